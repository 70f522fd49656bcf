package org.lithify.streams;

import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.HeadersBytesStore;

/** A key-value store whose values hold headers and a timestamp (Kafka Streams 4.3). */
final class LithifyHeadersKeyValueStore extends LithifyKeyValueStore implements HeadersBytesStore {
    LithifyHeadersKeyValueStore(final String name) {
        super(name);
    }

    @Override
    String format() {
        return "key-value headers 1";
    }

    @Override
    public <R> QueryResult<R> query(final Query<R> query, final PositionBound positionBound,
                                    final QueryConfig config) {
        return unknownQuery(query, config);
    }
}

package org.lithify.streams;

import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;

/** A window store whose values hold headers and a timestamp (Kafka Streams 4.3). */
final class LithifyHeadersWindowStore extends LithifyWindowStore implements TimestampedBytesStore, HeadersBytesStore {
    LithifyHeadersWindowStore(final WindowSettings settings) {
        super(settings);
    }

    @Override
    String values() {
        return "headers";
    }

    @Override
    public <R> QueryResult<R> query(final Query<R> query, final PositionBound positionBound,
                                    final QueryConfig config) {
        return unknownQuery(query, config);
    }
}

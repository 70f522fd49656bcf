package org.lithify.streams;

import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.HeadersBytesStore;

/** A session store whose aggregates hold headers (Kafka Streams 4.3). */
final class LithifyHeadersSessionStore extends LithifySessionStore implements HeadersBytesStore {
    LithifyHeadersSessionStore(final String name, final long retentionPeriod, final long segmentInterval) {
        super(name, retentionPeriod, segmentInterval);
    }

    @Override
    String format() {
        return "session headers 1";
    }

    @Override
    public <R> QueryResult<R> query(final Query<R> query, final PositionBound positionBound,
                                    final QueryConfig config) {
        return unknownQuery(query, config);
    }
}

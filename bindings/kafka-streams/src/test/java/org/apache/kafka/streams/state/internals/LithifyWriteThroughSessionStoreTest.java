package org.apache.kafka.streams.state.internals;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.lithify.streams.TestStores;

/** Streams' own tests of session stores, with those of the built-in store that finds sessions by time. */
class LithifyWriteThroughSessionStoreTest extends AbstractSessionBytesStoreTest {
    private int built;

    @Override
    StoreType storeType() {
        return StoreType.RocksDBTimeOrderedSessionStoreWithIndex;
    }

    @Override
    <K, V> SessionStore<K, V> buildSessionStore(final long retentionPeriod, final Serde<K> keySerde,
                                                final Serde<V> valueSerde) {
        return Stores.sessionStoreBuilder(TestStores.session("session-store-" + built++, retentionPeriod, false),
            keySerde, valueSerde).build();
    }
}

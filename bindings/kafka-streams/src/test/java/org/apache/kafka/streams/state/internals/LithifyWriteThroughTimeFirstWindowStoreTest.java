package org.apache.kafka.streams.state.internals;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;
import org.lithify.streams.TestStores;

/** Streams' own tests of window stores. */
class LithifyWriteThroughTimeFirstWindowStoreTest extends AbstractWindowBytesStoreTest {
    private int built;

    @Override
    <K, V> WindowStore<K, V> buildWindowStore(final long retentionPeriod, final long windowSize,
                                              final boolean retainDuplicates, final Serde<K> keySerde,
                                              final Serde<V> valueSerde) {
        return Stores.windowStoreBuilder(
            TestStores.window("window-store-" + built++, retentionPeriod, windowSize, retainDuplicates, true, false),
            keySerde, valueSerde).build();
    }
}

package org.apache.kafka.streams.state.internals;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.Nested;
import org.lithify.streams.TestStores;
import org.lithify.streams.TestStores.Mode;

/** Streams' own tests of window stores, for each way of a write to disk. */
class LithifyWindowStoreTest {
    @Nested
    class Transactional extends Cases {
        Transactional() {
            super(Mode.TRANSACTIONAL);
        }
    }

    @Nested
    class Spilling extends Cases {
        Spilling() {
            super(Mode.SPILLING);
        }
    }

    @Nested
    class WriteThrough extends Cases {
        WriteThrough() {
            super(Mode.WRITE_THROUGH);
        }
    }

    abstract static class Cases extends AbstractWindowBytesStoreTest {
        private final Mode mode;
        private int built;

        Cases(final Mode mode) {
            this.mode = mode;
        }

        @Override
        <K, V> WindowStore<K, V> buildWindowStore(final long retentionPeriod, final long windowSize,
                                                  final boolean retainDuplicates, final Serde<K> keySerde,
                                                  final Serde<V> valueSerde) {
            // A case may open a second store beside the first: it needs a name of its own.
            final String name = "window-store-" + built++;
            return Stores.windowStoreBuilder(
                TestStores.window(name, retentionPeriod, windowSize, retainDuplicates, mode),
                keySerde, valueSerde).build();
        }
    }
}

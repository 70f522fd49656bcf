package org.apache.kafka.streams.state.internals;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.junit.jupiter.api.Nested;
import org.lithify.streams.TestStores;
import org.lithify.streams.TestStores.Mode;

/** Streams' own tests of key-value stores, for each way of a write to disk. */
class LithifyKeyValueStoreTest {
    @Nested
    class Transactional extends Cases {
        @Override
        Mode mode() {
            return Mode.TRANSACTIONAL;
        }
    }

    @Nested
    class Spilling extends Cases {
        @Override
        Mode mode() {
            return Mode.SPILLING;
        }
    }

    @Nested
    class WriteThrough extends Cases {
        @Override
        Mode mode() {
            return Mode.WRITE_THROUGH;
        }
    }

    abstract static class Cases extends AbstractKeyValueStoreTest {
        abstract Mode mode();

        @Override
        @SuppressWarnings("unchecked")
        protected <K, V> KeyValueStore<K, V> createKeyValueStore(final StateStoreContext context) {
            final KeyValueStore<K, V> store = Stores.keyValueStoreBuilder(TestStores.keyValue("my-store", mode()),
                (Serde<K>) context.keySerde(), (Serde<V>) context.valueSerde()).build();
            store.init(context, store);
            return store;
        }
    }
}

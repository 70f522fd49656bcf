package org.apache.kafka.streams.state.internals;

import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.test.MockRecordCollector;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.lithify.streams.TestStores;
import org.lithify.streams.TestStores.Mode;

import java.util.ArrayList;
import java.util.List;

import static org.apache.kafka.common.utils.Utils.toList;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

/**
 * Streams' own tests of session stores, for each way of a write to disk, with the cases of the built-in store that
 * finds sessions by time.
 */
class LithifySessionStoreTest {
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

    abstract static class Cases extends AbstractSessionBytesStoreTest {
        private int built;

        abstract Mode mode();

        @Override
        StoreType storeType() {
            return StoreType.RocksDBTimeOrderedSessionStoreWithIndex;
        }

        @Override
        <K, V> SessionStore<K, V> buildSessionStore(final long retentionPeriod, final Serde<K> keySerde,
                                                    final Serde<V> valueSerde) {
            return Stores.sessionStoreBuilder(
                TestStores.session("session-store-" + built++, retentionPeriod, mode()), keySerde, valueSerde).build();
        }

        /**
         * The original restores into a closed store, which the built-in one takes, for it opens its segments as they
         * come. Streams opens a store before it restores; so does this case.
         */
        @Test
        @Override
        public void shouldRestore() {
            final List<KeyValue<Windowed<String>, Long>> expected = List.of(
                KeyValue.pair(new Windowed<>("a", new SessionWindow(0, 0)), 1L),
                KeyValue.pair(new Windowed<>("a", new SessionWindow(10, 10)), 2L),
                KeyValue.pair(new Windowed<>("a", new SessionWindow(100, 100)), 3L));
            expected.forEach(row -> sessionStore.put(row.key, row.value));
            final List<KeyValue<byte[], byte[]>> changelog = new ArrayList<>();
            for (final ProducerRecord<Object, Object> record
                : ((MockRecordCollector) context.recordCollector()).collected()) {
                changelog.add(KeyValue.pair(((Bytes) record.key()).get(), (byte[]) record.value()));
            }
            sessionStore.close();
            try (KeyValueIterator<Windowed<String>, Long> closed = sessionStore.fetch("a")) {
                assertFalse(closed.hasNext());
            }

            sessionStore = buildSessionStore(RETENTION_PERIOD, Serdes.String(),
                Serdes.Long());
            sessionStore.init(context, sessionStore);
            context.restore(sessionStore.name(), changelog);
            try (KeyValueIterator<Windowed<String>, Long> restored = sessionStore.fetch("a")) {
                assertEquals(expected, toList(restored));
            }
        }
    }
}

package org.lithify.streams;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

import java.time.Duration;

/** Stores for tests of other packages, with the guarantee chosen by the test and not by the configuration. */
public final class TestStores {
    private TestStores() {
    }

    /** A key-value store that is transactional, or writes through. */
    public static KeyValueBytesStoreSupplier keyValue(final String name, final boolean transactional) {
        return new KeyValueBytesStoreSupplier() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public KeyValueStore<Bytes, byte[]> get() {
                return new LithifyKeyValueStore(name) {
                    @Override
                    boolean isTransactional(final StateStoreContext context) {
                        return transactional;
                    }
                };
            }

            @Override
            public String metricsScope() {
                return StoreMetrics.SCOPE;
            }
        };
    }

    /** A window store of the layout that emission when a window closes takes, or of the usual one. */
    public static WindowBytesStoreSupplier window(final String name, final long retention, final long size,
                                                  final boolean retainDuplicates, final boolean timeFirst,
                                                  final boolean transactional) {
        final WindowSettings settings = LithifyStores.settings(name, Duration.ofMillis(retention),
            Duration.ofMillis(size), retainDuplicates, timeFirst ? WindowLayout.TIME_FIRST : WindowLayout.KEY_FIRST);
        return LithifyStores.windowStore(settings, given -> new LithifyWindowStore(given) {
            @Override
            boolean isTransactional(final StateStoreContext context) {
                return transactional;
            }
        });
    }

    /** A session store. */
    public static SessionBytesStoreSupplier session(final String name, final long retention,
                                                    final boolean transactional) {
        final SessionBytesStoreSupplier usual = LithifyStores.sessionStore(name, Duration.ofMillis(retention));
        return new SessionBytesStoreSupplier() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public SessionStore<Bytes, byte[]> get() {
                return new LithifySessionStore(name, retention, usual.segmentIntervalMs()) {
                    @Override
                    boolean isTransactional(final StateStoreContext context) {
                        return transactional;
                    }
                };
            }

            @Override
            public String metricsScope() {
                return usual.metricsScope();
            }

            @Override
            public long segmentIntervalMs() {
                return usual.segmentIntervalMs();
            }

            @Override
            public long retentionPeriod() {
                return retention;
            }
        };
    }
}

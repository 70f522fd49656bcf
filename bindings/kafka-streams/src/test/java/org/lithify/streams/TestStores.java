package org.lithify.streams;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

import java.time.Duration;

/** Stores for tests of other packages, whose way to disk the test chooses. */
public final class TestStores {
    /** What becomes of a write. */
    public enum Mode {
        /** It stays in memory until its commit. */
        TRANSACTIONAL,
        /** It goes to the scratch family at once, and to its place with its commit. */
        SPILLING,
        /** It goes to its place at once. */
        WRITE_THROUGH;

        boolean isTransactional() {
            return this != WRITE_THROUGH;
        }

        long uncommittedMaxBytes() {
            return this == TRANSACTIONAL ? 1L << 25 : 0;
        }
    }

    private TestStores() {
    }

    /** A key-value store. */
    public static KeyValueBytesStoreSupplier keyValue(final String name, final Mode mode) {
        return new KeyValueBytesStoreSupplier() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public KeyValueStore<Bytes, byte[]> get() {
                return new LithifyKeyValueStore(name) {
                    @Override
                    boolean isTransactional() {
                        return mode.isTransactional();
                    }

                    @Override
                    long uncommittedMaxBytes(final LithifyConfig config) {
                        return mode.uncommittedMaxBytes();
                    }
                };
            }

            @Override
            public String metricsScope() {
                return StoreMetrics.SCOPE;
            }
        };
    }

    /** A window store. */
    public static WindowBytesStoreSupplier window(final String name, final long retention, final long size,
                                                  final boolean retainDuplicates, final Mode mode) {
        final WindowSettings settings = LithifyStores.settings(name, Duration.ofMillis(retention),
            Duration.ofMillis(size), retainDuplicates);
        return LithifyStores.windowStore(settings, given -> new LithifyWindowStore(given) {
            @Override
            boolean isTransactional() {
                return mode.isTransactional();
            }

            @Override
            long uncommittedMaxBytes(final LithifyConfig config) {
                return mode.uncommittedMaxBytes();
            }
        });
    }

    /** A session store. */
    public static SessionBytesStoreSupplier session(final String name, final long retention, final Mode mode) {
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
                    boolean isTransactional() {
                        return mode.isTransactional();
                    }

                    @Override
                    long uncommittedMaxBytes(final LithifyConfig config) {
                        return mode.uncommittedMaxBytes();
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

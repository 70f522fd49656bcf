package org.lithify.streams;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

import java.time.Duration;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * Suppliers of stores, one for each of {@code org.apache.kafka.streams.state.Stores}' persistent ones.
 *
 * <p>Give them to {@code Stores.keyValueStoreBuilder} and its like, or to {@code Materialized.as}.
 * {@link LithifyDslStoreSuppliers} chooses them for a whole topology.
 */
public final class LithifyStores {
    private static final long SEGMENT_INTERVAL_MIN_MS = 60_000L;

    private LithifyStores() {
    }

    /**
     * A key-value store.
     *
     * @param name the store's name
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier keyValueStore(final String name) {
        return new KeyValueSupplier(name, () -> new LithifyKeyValueStore(name));
    }

    /**
     * A key-value store whose values carry timestamps.
     *
     * @param name the store's name
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier timestampedKeyValueStore(final String name) {
        return new KeyValueSupplier(name, () -> new LithifyTimestampedKeyValueStore(name));
    }

    /**
     * A key-value store whose values carry timestamps and headers; for Kafka Streams 4.3 and later.
     *
     * @param name the store's name
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier timestampedKeyValueStoreWithHeaders(final String name) {
        return Headers.keyValue(name);
    }

    /**
     * A window store.
     *
     * @param name             the store's name
     * @param retentionPeriod  how long windows are kept, at least the window's size
     * @param windowSize       the size of the windows
     * @param retainDuplicates whether a key may have several values in a window
     * @return its supplier
     */
    public static WindowBytesStoreSupplier windowStore(final String name, final Duration retentionPeriod,
                                                       final Duration windowSize, final boolean retainDuplicates) {
        return new WindowSupplier(settings(name, retentionPeriod, windowSize, retainDuplicates), LithifyWindowStore::new);
    }

    /**
     * A window store whose values carry timestamps.
     *
     * @param name             the store's name
     * @param retentionPeriod  how long windows are kept, at least the window's size
     * @param windowSize       the size of the windows
     * @param retainDuplicates whether a key may have several values in a window
     * @return its supplier
     */
    public static WindowBytesStoreSupplier timestampedWindowStore(final String name, final Duration retentionPeriod,
                                                                  final Duration windowSize,
                                                                  final boolean retainDuplicates) {
        return new WindowSupplier(settings(name, retentionPeriod, windowSize, retainDuplicates), LithifyTimestampedWindowStore::new);
    }

    /**
     * A window store whose values carry timestamps and headers; for Kafka Streams 4.3 and later.
     *
     * @param name             the store's name
     * @param retentionPeriod  how long windows are kept, at least the window's size
     * @param windowSize       the size of the windows
     * @param retainDuplicates whether a key may have several values in a window
     * @return its supplier
     */
    public static WindowBytesStoreSupplier timestampedWindowStoreWithHeaders(final String name,
                                                                             final Duration retentionPeriod,
                                                                             final Duration windowSize,
                                                                             final boolean retainDuplicates) {
        return Headers.window(settings(name, retentionPeriod, windowSize, retainDuplicates));
    }

    /**
     * A session store.
     *
     * @param name            the store's name
     * @param retentionPeriod how long sessions are kept
     * @return its supplier
     */
    public static SessionBytesStoreSupplier sessionStore(final String name, final Duration retentionPeriod) {
        final long retention = retentionMs(retentionPeriod);
        return new SessionSupplier(name, retention,
            () -> new LithifySessionStore(name, retention, segmentInterval(retention)));
    }

    /**
     * A session store whose aggregates carry headers; for Kafka Streams 4.3 and later.
     *
     * @param name            the store's name
     * @param retentionPeriod how long sessions are kept
     * @return its supplier
     */
    public static SessionBytesStoreSupplier sessionStoreWithHeaders(final String name,
                                                                    final Duration retentionPeriod) {
        return Headers.session(name, retentionMs(retentionPeriod));
    }

    static WindowBytesStoreSupplier windowStore(final WindowSettings settings,
                                                final Function<WindowSettings, WindowStore<Bytes, byte[]>> maker) {
        return new WindowSupplier(settings, maker);
    }

    static WindowSettings settings(final String name, final Duration retentionPeriod, final Duration windowSize,
                                   final boolean retainDuplicates) {
        Objects.requireNonNull(name, "name cannot be null");
        final long retention = retentionMs(retentionPeriod);
        final long size = windowSize.toMillis();
        if (size < 0) {
            throw new IllegalArgumentException("windowSize cannot be negative");
        }
        if (size > retention) {
            throw new IllegalArgumentException("The retention period of the window store " + name
                + " must be no smaller than its window size. Got size=[" + size + "], retention=[" + retention + "]");
        }
        return new WindowSettings(name, retention, segmentInterval(retention), size, retainDuplicates);
    }

    /** As the built-in stores cut time. */
    private static long segmentInterval(final long retentionPeriod) {
        return Math.max(retentionPeriod / 2, SEGMENT_INTERVAL_MIN_MS);
    }

    private static long retentionMs(final Duration retentionPeriod) {
        final long retention = retentionPeriod.toMillis();
        if (retention < 0) {
            throw new IllegalArgumentException("retentionPeriod cannot be negative");
        }
        return retention;
    }

    private record KeyValueSupplier(String name, Supplier<KeyValueStore<Bytes, byte[]>> maker)
        implements KeyValueBytesStoreSupplier {
        KeyValueSupplier {
            Objects.requireNonNull(name, "name cannot be null");
        }

        @Override
        public KeyValueStore<Bytes, byte[]> get() {
            return maker.get();
        }

        @Override
        public String metricsScope() {
            return StoreMetrics.SCOPE;
        }
    }

    private static class WindowSupplier implements WindowBytesStoreSupplier {
        private final WindowSettings settings;
        private final Function<WindowSettings, WindowStore<Bytes, byte[]>> maker;

        WindowSupplier(final WindowSettings settings,
                       final Function<WindowSettings, WindowStore<Bytes, byte[]>> maker) {
            this.settings = settings;
            this.maker = maker;
        }

        @Override
        public String name() {
            return settings.name();
        }

        @Override
        public WindowStore<Bytes, byte[]> get() {
            return maker.apply(settings);
        }

        @Override
        public String metricsScope() {
            return StoreMetrics.SCOPE + "-window";
        }

        @Override
        public long segmentIntervalMs() {
            return settings.segmentInterval();
        }

        @Override
        public long windowSize() {
            return settings.windowSize();
        }

        @Override
        public boolean retainDuplicates() {
            return settings.retainDuplicates();
        }

        @Override
        public long retentionPeriod() {
            return settings.retentionPeriod();
        }
    }

    private static class SessionSupplier implements SessionBytesStoreSupplier {
        private final String name;
        private final long retentionPeriod;
        private final Supplier<SessionStore<Bytes, byte[]>> maker;

        SessionSupplier(final String name, final long retentionPeriod,
                        final Supplier<SessionStore<Bytes, byte[]>> maker) {
            this.name = Objects.requireNonNull(name, "name cannot be null");
            this.retentionPeriod = retentionPeriod;
            this.maker = maker;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public SessionStore<Bytes, byte[]> get() {
            return maker.get();
        }

        @Override
        public String metricsScope() {
            return StoreMetrics.SCOPE + "-session";
        }

        @Override
        public long segmentIntervalMs() {
            return segmentInterval(retentionPeriod);
        }

        @Override
        public long retentionPeriod() {
            return retentionPeriod;
        }
    }

    /** What needs classes of Kafka Streams 4.3; an older version does not load it. */
    static final class Headers {
        private Headers() {
        }

        static KeyValueBytesStoreSupplier keyValue(final String name) {
            Objects.requireNonNull(name, "name cannot be null");
            return new KeyValueWithHeaders(name);
        }

        static WindowBytesStoreSupplier window(final WindowSettings settings) {
            return new WindowWithHeaders(settings);
        }

        static SessionBytesStoreSupplier session(final String name, final long retentionPeriod) {
            return new SessionWithHeaders(name, retentionPeriod);
        }

        private record KeyValueWithHeaders(String name)
            implements KeyValueBytesStoreSupplier, HeadersBytesStoreSupplier {
            @Override
            public KeyValueStore<Bytes, byte[]> get() {
                return new LithifyHeadersKeyValueStore(name);
            }

            @Override
            public String metricsScope() {
                return StoreMetrics.SCOPE;
            }
        }

        private static final class WindowWithHeaders extends WindowSupplier implements HeadersBytesStoreSupplier {
            WindowWithHeaders(final WindowSettings settings) {
                super(settings, LithifyHeadersWindowStore::new);
            }
        }

        private static final class SessionWithHeaders extends SessionSupplier implements HeadersBytesStoreSupplier {
            SessionWithHeaders(final String name, final long retentionPeriod) {
                super(name, retentionPeriod,
                    () -> new LithifyHeadersSessionStore(name, retentionPeriod, segmentInterval(retentionPeriod)));
            }
        }
    }
}

package org.lithify.streams;

import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * Lithify for every store that the DSL of a topology makes.
 *
 * <p>Set {@code dsl.store.suppliers.class} to this class.
 */
public final class LithifyDslStoreSuppliers implements DslStoreSuppliers {
    /** What stores of the DSL hold. Streams up to 4.2 knows the first two. */
    private enum Values { PLAIN, TIMESTAMPED, HEADERS }

    /** Made by Kafka Streams. */
    public LithifyDslStoreSuppliers() {
    }

    @Override
    public KeyValueBytesStoreSupplier keyValueStore(final DslKeyValueParams params) {
        return switch (Formats.of(params)) {
            case PLAIN -> LithifyStores.keyValueStore(params.name());
            case TIMESTAMPED -> LithifyStores.timestampedKeyValueStore(params.name());
            case HEADERS -> LithifyStores.timestampedKeyValueStoreWithHeaders(params.name());
        };
    }

    @Override
    public WindowBytesStoreSupplier windowStore(final DslWindowParams params) {
        final WindowSettings settings = LithifyStores.settings(params.name(), params.retentionPeriod(),
            params.windowSize(), params.retainDuplicates());
        return switch (Formats.of(params)) {
            case PLAIN -> LithifyStores.windowStore(settings, LithifyWindowStore::new);
            case TIMESTAMPED -> LithifyStores.windowStore(settings, LithifyTimestampedWindowStore::new);
            case HEADERS -> LithifyStores.Headers.window(settings);
        };
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(final DslSessionParams params) {
        return Formats.of(params) == Values.HEADERS
            ? LithifyStores.sessionStoreWithHeaders(params.name(), params.retentionPeriod())
            : LithifyStores.sessionStore(params.name(), params.retentionPeriod());
    }

    /** Reads the format of parameters, which Streams says in another way since 4.3. */
    private static final class Formats {
        private static final boolean HAS_FORMATS = hasFormats();

        private Formats() {
        }

        @SuppressWarnings("deprecation")
        static Values of(final DslKeyValueParams params) {
            if (HAS_FORMATS) {
                return Values.valueOf(params.dslStoreFormat().name());
            }
            return params.isTimestamped() ? Values.TIMESTAMPED : Values.PLAIN;
        }

        @SuppressWarnings("deprecation")
        static Values of(final DslWindowParams params) {
            if (HAS_FORMATS) {
                return params.dslStoreFormat() == null ? Values.TIMESTAMPED
                    : Values.valueOf(params.dslStoreFormat().name());
            }
            return params.isTimestamped() ? Values.TIMESTAMPED : Values.PLAIN;
        }

        static Values of(final DslSessionParams params) {
            return HAS_FORMATS && params.storeFormat() != null ? Values.valueOf(params.storeFormat().name())
                : Values.PLAIN;
        }

        private static boolean hasFormats() {
            try {
                Class.forName("org.apache.kafka.streams.DslStoreFormat", false, Formats.class.getClassLoader());
                return true;
            } catch (final ClassNotFoundException e) {
                return false;
            }
        }
    }
}

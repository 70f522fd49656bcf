package org.lithify.streams;

import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.Sensor.RecordingLevel;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;

import java.util.function.ToLongFunction;

/**
 * Figures of a store in Streams' registry: group {@code stream-state-metrics}, tag {@code lithify-state-id}.
 *
 * <p>Operations are measured by the wrappers of Streams; here is what only the engine knows. A figure of a store
 * that is closed is 0.
 */
final class StoreMetrics {
    static final String SCOPE = "lithify";

    private StoreMetrics() {
    }

    static void register(final StateStoreContext context, final String store, final LithifyStore source) {
        if (!(context.metrics() instanceof StreamsMetricsImpl metrics)) {
            return;
        }
        add(metrics, context, store, "disk-bytes", "Bytes of the tables of this store",
            source, open -> open.rows().diskBytes());
        add(metrics, context, store, "uncommitted-bytes", "Memory for writes since the last commit",
            source, open -> open.rows().uncommittedBytes());
        add(metrics, context, store, "spills-total", "How often writes since the last commit went to disk",
            source, open -> open.rows().spills());
        add(metrics, context, store, "commits-total", "Commits of this store since it was opened",
            source, open -> open.rows().commits());
        add(metrics, context, store, "memory-bytes", "Memory that all stores of this process share, in use",
            source, open -> open.database().memoryBytes());
    }

    private static void add(final StreamsMetricsImpl metrics, final StateStoreContext context, final String store,
                            final String name, final String description, final LithifyStore source,
                            final ToLongFunction<LithifyStore> figure) {
        final Gauge<Long> gauge = (config, now) -> source.isOpen() ? safely(source, figure) : 0L;
        metrics.addStoreLevelMutableMetric(context.taskId().toString(), SCOPE, store, name, description,
            RecordingLevel.INFO, gauge);
    }

    /** A reader of metrics may come while the store closes. */
    private static long safely(final LithifyStore source, final ToLongFunction<LithifyStore> figure) {
        try {
            return figure.applyAsLong(source);
        } catch (final LithifyException e) {
            return 0L;
        }
    }
}

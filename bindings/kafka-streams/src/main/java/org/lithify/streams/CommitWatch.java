package org.lithify.streams;

import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.streams.StreamsMetrics;

import java.util.Map;

/**
 * Notices that the transaction which carried a store's writes was committed.
 *
 * <p>Under exactly-once Kafka Streams 4.3 does not tell stores of the commits of a running task: it calls
 * {@code StateStore.commit} when a task is suspended or closed, and not in between. But it counts the commits of
 * a stream thread in a public metric, {@code commit-total} of {@code stream-thread-metrics}, after the transaction
 * was committed and before the thread processes anything further. A transaction spans all tasks of its thread. So
 * a store that finds the count moved, before it takes the next write, knows: all its writes up to now are committed.
 *
 * <p>Only the thread that writes the store uses this.
 */
final class CommitWatch {
    private final StreamsMetrics metrics;
    private Thread thread;
    private Metric commits;
    private Object seen;

    CommitWatch(final StreamsMetrics metrics) {
        this.metrics = metrics;
    }

    /** Whether there was a commit since the last call on this thread. Without the metric there never is. */
    boolean advanced() {
        if (thread != Thread.currentThread()) {
            thread = Thread.currentThread();
            commits = metrics.metrics().get(new MetricName("commit-total", "stream-thread-metrics", "",
                Map.of("thread-id", thread.getName())));
            seen = commits == null ? null : commits.metricValue();
            return false;
        }
        if (commits == null) {
            return false;
        }
        final Object now = commits.metricValue();
        if (now.equals(seen)) {
            return false;
        }
        seen = now;
        return true;
    }
}

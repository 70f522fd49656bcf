package org.lithify.streams;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.NavigableSet;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * A store whose rows go when stream time has passed them by more than the retention period.
 *
 * <p>Time is cut into segments, as the built-in stores cut it: a row is dropped with its segment, and a record for
 * a segment that is gone is late. All segments are in one family, and a stored key begins with its segment (eight
 * bytes). So the end of a segment is one removal of a range, which drops whole tables, and a reader of a key
 * touches a few short ranges.
 *
 * <p>As with the built-in stores, a reader of a closed store finds nothing; a writer is refused.
 */
abstract class SegmentedStore extends LithifyStore {
    static final int SEGMENT_BYTES = Long.BYTES;
    private static final long NO_TIME = ConsumerRecord.NO_TIMESTAMP;

    private final long retentionPeriod;
    private final long segmentInterval;
    private final NavigableSet<Long> segments = new ConcurrentSkipListSet<>();
    private final List<ByteRange> expiredByRestore = new ArrayList<>();
    private volatile long observedStreamTime = NO_TIME;
    private Sensor lateRecords;

    SegmentedStore(final String name, final long retentionPeriod, final long segmentInterval) {
        super(name);
        this.retentionPeriod = retentionPeriod;
        this.segmentInterval = segmentInterval;
    }

    /** The time by which a record of the changelog expires. */
    abstract long expiryTime(byte[] changelogKey);

    /** The stored key of a changelog record whose segment is {@code segment}. */
    abstract byte[] storedKey(byte[] changelogKey, byte[] segment);

    @Override
    final void opened() {
        if (context().metrics() instanceof StreamsMetricsImpl metrics) {
            lateRecords = TaskMetrics.droppedRecordsSensor(Thread.currentThread().getName(),
                context().taskId().toString(), metrics);
        }
        observedStreamTime = NO_TIME;
        segments.clear();
        byte[] from = null;
        do {
            try (RowIterator rows = rows().iterator(new ByteRange(from, null), null, true)) {
                from = null;
                if (rows.next()) {
                    final long segment = ByteBuffer.wrap(rows.key()).getLong() ^ Long.MIN_VALUE;
                    segments.add(segment);
                    from = segmentBytes(segment + 1);
                }
            }
        } while (from != null);
    }

    @Override
    final byte[] storedKey(final byte[] changelogKey) {
        final long segment = segmentOf(expiryTime(changelogKey));
        if (segment < firstLiveSegment()) {
            return null;
        }
        segments.add(segment);
        return storedKey(changelogKey, segmentBytes(segment));
    }

    @Override
    final void beforeRestore(final Collection<ConsumerRecord<byte[], byte[]>> records) {
        records.forEach(record -> observe(expiryTime(record.key())));
    }

    @Override
    final List<ByteRange> expiredByRestore() {
        expiredByRestore.clear();
        expire(expiredByRestore);
        return expiredByRestore;
    }

    /** Writes a row that expires by {@code time}, unless it is late. Null removes the row. */
    final void write(final long time, final Function<byte[], byte[]> keyInSegment, final byte[] value) {
        requireOpen();
        observe(time);
        final long segment = segmentOf(time);
        if (segment < firstLiveSegment()) {
            if (lateRecords != null && context() instanceof InternalProcessorContext<?, ?> internal) {
                lateRecords.record(1.0d, internal.currentSystemTimeMs());
            }
            return;
        }
        segments.add(segment);
        write(keyInSegment.apply(segmentBytes(segment)), value);
        final List<ByteRange> expired = new ArrayList<>(1);
        expire(expired);
        expired.forEach(range -> rows().deleteRange(range));
    }

    /** Removes a row, whatever its age; time goes on. */
    final void remove(final long time, final Function<byte[], byte[]> keyInSegment) {
        requireOpen();
        observe(time);
        final long segment = segmentOf(time);
        if (segments.contains(segment)) {
            write(keyInSegment.apply(segmentBytes(segment)), null);
        }
    }

    /** A row that expires by {@code time}; null if it is expired, or not there, or the store is closed. */
    final byte[] read(final long time, final Function<byte[], byte[]> keyInSegment) {
        final long segment = segmentOf(time);
        if (!isOpen() || time < firstLiveTime() || !segments.contains(segment)) {
            return null;
        }
        return read(keyInSegment.apply(segmentBytes(segment)));
    }

    /** The earliest time that is not expired, or {@code from} if that is later. */
    final long liveFrom(final long from) {
        return Math.max(from, firstLiveTime());
    }

    /**
     * Rows of the segments from {@code from} to {@code to}.
     *
     * @param rangeInSegment the range behind the segment's bytes, given the last time of the segment
     * @param wanted         whether a stored key is one of those looked for
     */
    final StoreIterator iterator(final long from, final long to, final Function<Long, ByteRange> rangeInSegment,
                                 final Predicate<byte[]> wanted, final boolean forward) {
        if (!isOpen() || from > to) {
            return StoreIterator.empty();
        }
        final NavigableSet<Long> searched = segments.subSet(segmentOf(from), true, segmentOf(to), true);
        final List<ByteRange> ranges = new ArrayList<>();
        for (final long segment : forward ? searched : searched.descendingSet()) {
            ranges.add(rangeInSegment.apply(lastTimeOf(segment)).behind(segmentBytes(segment)));
        }
        return iterator(ranges, wanted, forward);
    }

    private void observe(final long time) {
        if (time > observedStreamTime) {
            observedStreamTime = time;
        }
    }

    private long firstLiveTime() {
        return observedStreamTime - retentionPeriod + 1;
    }

    private long firstLiveSegment() {
        return segmentOf(observedStreamTime - retentionPeriod);
    }

    private long segmentOf(final long time) {
        return time / segmentInterval;
    }

    private long lastTimeOf(final long segment) {
        final long next = (segment + 1) * segmentInterval;
        return next < 0 ? Long.MAX_VALUE : next - 1;
    }

    /** Forgets the segments that are over, and adds the range of their rows to {@code expired}. */
    private void expire(final List<ByteRange> expired) {
        final NavigableSet<Long> over = segments.headSet(firstLiveSegment(), false);
        if (!over.isEmpty()) {
            expired.add(new ByteRange(segmentBytes(over.first()), segmentBytes(over.last() + 1)));
            over.clear();
        }
    }

    /** Eight bytes in the order of segments. */
    private static byte[] segmentBytes(final long segment) {
        return ByteBuffer.allocate(SEGMENT_BYTES).putLong(segment ^ Long.MIN_VALUE).array();
    }
}

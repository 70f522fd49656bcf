package org.lithify.streams;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

import java.util.Arrays;
import java.util.Objects;

/** A window store: values by key and window start, dropped after the retention period. */
class LithifyWindowStore extends SegmentedStore implements WindowStore<Bytes, byte[]> {
    private final long windowSize;
    private final boolean retainDuplicates;
    private int number;

    LithifyWindowStore(final WindowSettings settings) {
        super(settings.name(), settings.retentionPeriod(), settings.segmentInterval());
        this.windowSize = settings.windowSize();
        this.retainDuplicates = settings.retainDuplicates();
    }

    @Override
    String format() {
        return "window " + values() + " 1";
    }

    /** The format of values. */
    String values() {
        return "plain";
    }

    @Override
    final long expiryTime(final byte[] changelogKey) {
        return WindowKeys.start(changelogKey);
    }

    @Override
    final byte[] storedKey(final byte[] changelogKey, final byte[] segment) {
        return ByteRange.concat(segment, changelogKey);
    }

    @Override
    public void put(final Bytes key, final byte[] value, final long windowStartTimestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        if (value == null && retainDuplicates) {
            return;
        }
        if (retainDuplicates) {
            number = (number + 1) & Integer.MAX_VALUE;
        }
        final int rowNumber = number;
        write(windowStartTimestamp,
            segment -> WindowKeys.encode(segment, key.get(), windowStartTimestamp, rowNumber), value);
    }

    @Override
    public byte[] fetch(final Bytes key, final long time) {
        Objects.requireNonNull(key, "key cannot be null");
        return read(time, segment -> WindowKeys.encode(segment, key.get(), time, number));
    }

    @Override
    public WindowStoreIterator<byte[]> fetch(final Bytes key, final long timeFrom, final long timeTo) {
        return new ByStart(ofKey(key, timeFrom, timeTo, true));
    }

    @Override
    public WindowStoreIterator<byte[]> backwardFetch(final Bytes key, final long timeFrom, final long timeTo) {
        return new ByStart(ofKey(key, timeFrom, timeTo, false));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(final Bytes keyFrom, final Bytes keyTo,
                                                           final long timeFrom, final long timeTo) {
        return new WindowedIterator(ofKeys(keyFrom, keyTo, timeFrom, timeTo, true), this::windowed);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(final Bytes keyFrom, final Bytes keyTo,
                                                                   final long timeFrom, final long timeTo) {
        return new WindowedIterator(ofKeys(keyFrom, keyTo, timeFrom, timeTo, false), this::windowed);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> all() {
        return new WindowedIterator(ofKeys(null, null, 0, Long.MAX_VALUE, true), this::windowed);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardAll() {
        return new WindowedIterator(ofKeys(null, null, 0, Long.MAX_VALUE, false), this::windowed);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetchAll(final long timeFrom, final long timeTo) {
        return new WindowedIterator(ofKeys(null, null, timeFrom, timeTo, true), this::windowed);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetchAll(final long timeFrom, final long timeTo) {
        return new WindowedIterator(ofKeys(null, null, timeFrom, timeTo, false), this::windowed);
    }

    private StoreIterator ofKey(final Bytes key, final long timeFrom, final long timeTo, final boolean forward) {
        Objects.requireNonNull(key, "key cannot be null");
        final byte[] bytes = key.get();
        final long from = Math.max(0, liveFrom(timeFrom));
        return iterator(from, timeTo, lastTime -> WindowKeys.ofKey(bytes, from, Math.min(timeTo, lastTime)),
            stored -> isWithin(stored, from, timeTo) && Arrays.equals(WindowKeys.key(stored), bytes), forward);
    }

    private StoreIterator ofKeys(final Bytes keyFrom, final Bytes keyTo, final long timeFrom, final long timeTo,
                                 final boolean forward) {
        if (keyFrom != null && keyTo != null && keyFrom.compareTo(keyTo) > 0) {
            return emptyAfterInvertedRange();
        }
        final byte[] first = keyFrom == null ? null : keyFrom.get();
        final byte[] last = keyTo == null ? null : keyTo.get();
        final long from = Math.max(0, liveFrom(timeFrom));
        return iterator(from, timeTo, lastTime -> WindowKeys.ofKeys(first, last, Math.min(timeTo, lastTime)),
            stored -> isWithin(stored, from, timeTo) && isBetween(WindowKeys.key(stored), first, last), forward);
    }

    private boolean isWithin(final byte[] stored, final long from, final long to) {
        final long start = WindowKeys.start(stored);
        return start >= from && start <= to;
    }

    static boolean isBetween(final byte[] key, final byte[] first, final byte[] last) {
        return (first == null || Arrays.compareUnsigned(key, first) >= 0)
            && (last == null || Arrays.compareUnsigned(key, last) <= 0);
    }

    private final class ByStart implements WindowStoreIterator<byte[]> {
        private final StoreIterator rows;

        ByStart(final StoreIterator rows) {
            this.rows = rows;
        }

        @Override
        public boolean hasNext() {
            return rows.hasNext();
        }

        @Override
        public KeyValue<Long, byte[]> next() {
            final KeyValue<Bytes, byte[]> row = rows.next();
            return KeyValue.pair(WindowKeys.start(row.key.get()), row.value);
        }

        @Override
        public Long peekNextKey() {
            return WindowKeys.start(rows.peekNextKey().get());
        }

        @Override
        public void close() {
            rows.close();
        }
    }

    private Windowed<Bytes> windowed(final byte[] stored) {
        final long start = WindowKeys.start(stored);
        final long end = start + windowSize;
        return new Windowed<>(Bytes.wrap(WindowKeys.key(stored)),
            new TimeWindow(start, end < 0 ? Long.MAX_VALUE : end));
    }
}

package org.lithify.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;

/**
 * Writes of a store since its last commit, in memory.
 *
 * <p>One thread writes at a time; any number read. A removal is a row of its own, for it hides one beneath. Arrays
 * are copied on their way in and out: processors fill the same buffer anew for each row.
 */
final class Overlay {
    /** What stands for a removal; compared by identity. */
    static final byte[] REMOVED = new byte[0];
    /** About what a row costs beyond its bytes: two arrays, a node of the map. */
    private static final long ROW_OVERHEAD_BYTES = 80;

    private final ConcurrentSkipListMap<byte[], byte[]> rows = new ConcurrentSkipListMap<>(Arrays::compareUnsigned);
    private final List<ByteRange> deletedRanges = new ArrayList<>();
    private final Spill under;
    private volatile long bytes;

    /** An overlay over the committed rows, or over a spill of the same generation and then over those. */
    Overlay(final Spill under) {
        this.under = under;
    }

    /** What was spilled since the last commit; null if nothing was. */
    Spill under() {
        return under;
    }

    boolean isEmpty() {
        return rows.isEmpty() && deletedRanges.isEmpty();
    }

    long bytes() {
        return bytes;
    }

    long count() {
        return rows.size();
    }

    /** Writes a row; a null value removes it. Returns how many bytes more it takes. */
    long put(final byte[] key, final byte[] value) {
        final byte[] stored = value == null ? REMOVED : value.clone();
        final byte[] old = rows.put(key.clone(), stored);
        final long more = old == null ? key.length + stored.length + ROW_OVERHEAD_BYTES : stored.length - old.length;
        bytes += more;
        return more;
    }

    /** A copy of the value, {@link #REMOVED}, or null if it says nothing of that key. */
    byte[] get(final byte[] key) {
        final byte[] stored = rows.get(key);
        return stored == null || stored == REMOVED ? stored : stored.clone();
    }

    /**
     * Forgets the rows of a range, and has the commit remove what is beneath. Returns how many bytes more it takes,
     * a negative number.
     */
    long deleteRange(final ByteRange range) {
        final long before = bytes;
        deletedRanges.add(range);
        final Iterator<Map.Entry<byte[], byte[]>> inRange = subMap(range).entrySet().iterator();
        while (inRange.hasNext()) {
            final Map.Entry<byte[], byte[]> row = inRange.next();
            bytes -= row.getKey().length + row.getValue().length + ROW_OVERHEAD_BYTES;
            inRange.remove();
        }
        return bytes - before;
    }

    List<ByteRange> deletedRanges() {
        return deletedRanges;
    }

    Iterable<Map.Entry<byte[], byte[]>> entries() {
        return rows.entrySet();
    }

    /** The rows of a range as they are now; later writes do not show. Null if there are none. */
    RowIterator copy(final ByteRange range, final boolean forward) {
        if (range.isEmpty()) {
            return null;
        }
        final NavigableMap<byte[], byte[]> part = subMap(range);
        if (part.isEmpty()) {
            return null;
        }
        final List<byte[]> copied = new ArrayList<>();
        (forward ? part : part.descendingMap()).forEach((key, value) -> {
            copied.add(key);
            copied.add(value);
        });
        return new Copy(copied);
    }

    private NavigableMap<byte[], byte[]> subMap(final ByteRange range) {
        if (range.start() != null && range.end() != null) {
            return rows.subMap(range.start(), true, range.end(), false);
        }
        if (range.start() != null) {
            return rows.tailMap(range.start(), true);
        }
        return range.end() != null ? rows.headMap(range.end(), false) : rows;
    }

    private static final class Copy implements RowIterator {
        private final List<byte[]> keysAndValues;
        private int at = -2;
        private byte[] key;
        private byte[] value;

        Copy(final List<byte[]> keysAndValues) {
            this.keysAndValues = keysAndValues;
        }

        @Override
        public boolean next() {
            at += 2;
            if (at >= keysAndValues.size()) {
                return false;
            }
            final byte[] stored = keysAndValues.get(at + 1);
            key = keysAndValues.get(at).clone();
            value = stored == REMOVED ? null : stored.clone();
            return true;
        }

        @Override
        public byte[] key() {
            return key;
        }

        @Override
        public byte[] value() {
            return value;
        }

        @Override
        public void close() {
        }
    }
}

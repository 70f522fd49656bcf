package org.lithify.streams;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Where key, window start (eight bytes) and sequence number (four bytes) stand in a stored key of a window store.
 *
 * <p>In the changelog the order is always key, start, sequence number.
 */
enum WindowLayout {
    /** Key, start, number: all windows of a key are together. */
    KEY_FIRST {
        @Override
        byte[] encode(final byte[] segment, final byte[] key, final long start, final int number) {
            return ByteBuffer.allocate(segment.length + key.length + SUFFIX_BYTES)
                .put(segment).put(key).putLong(start).putInt(number).array();
        }

        @Override
        byte[] key(final byte[] stored) {
            return Arrays.copyOfRange(stored, SegmentedStore.SEGMENT_BYTES, stored.length - SUFFIX_BYTES);
        }

        @Override
        long start(final byte[] stored) {
            return ByteBuffer.wrap(stored).getLong(stored.length - SUFFIX_BYTES);
        }

        @Override
        ByteRange ofKey(final byte[] key, final long from, final long to) {
            return ByteRange.closed(suffixed(key, from, 0), suffixed(key, to, Integer.MAX_VALUE));
        }

        @Override
        ByteRange ofKeys(final byte[] from, final byte[] to, final long timeFrom, final long timeTo) {
            final byte[] suffix = suffixed(new byte[0], timeTo, Integer.MAX_VALUE);
            return new ByteRange(from, to == null ? null : ByteRange.after(greatest(to, suffix)));
        }
    },

    /** Start, key, number: all keys of a window are together, as emission when a window closes wants them. */
    TIME_FIRST {
        @Override
        byte[] encode(final byte[] segment, final byte[] key, final long start, final int number) {
            return ByteBuffer.allocate(segment.length + key.length + SUFFIX_BYTES)
                .put(segment).putLong(start).put(key).putInt(number).array();
        }

        @Override
        byte[] key(final byte[] stored) {
            return Arrays.copyOfRange(stored, SegmentedStore.SEGMENT_BYTES + Long.BYTES,
                stored.length - Integer.BYTES);
        }

        @Override
        long start(final byte[] stored) {
            return ByteBuffer.wrap(stored).getLong(SegmentedStore.SEGMENT_BYTES);
        }

        @Override
        ByteRange ofKey(final byte[] key, final long from, final long to) {
            return ofKeys(key, key, from, to);
        }

        @Override
        ByteRange ofKeys(final byte[] from, final byte[] to, final long timeFrom, final long timeTo) {
            return new ByteRange(timeBytes(timeFrom), timeTo == Long.MAX_VALUE ? null : timeBytes(timeTo + 1));
        }
    };

    private static final int SUFFIX_BYTES = Long.BYTES + Integer.BYTES;

    abstract byte[] encode(byte[] segment, byte[] key, long start, int number);

    abstract byte[] key(byte[] stored);

    abstract long start(byte[] stored);

    /** A range in a segment with all windows of {@code key} that start from {@code from} to {@code to}. */
    abstract ByteRange ofKey(byte[] key, long from, long to);

    /** The same of the keys from {@code from} to {@code to}; null is an open end. Other rows may be in it. */
    abstract ByteRange ofKeys(byte[] from, byte[] to, long timeFrom, long timeTo);

    /** The key of a changelog record. */
    static byte[] changelogKey(final byte[] record) {
        return Arrays.copyOf(record, record.length - SUFFIX_BYTES);
    }

    static long changelogStart(final byte[] record) {
        return ByteBuffer.wrap(record).getLong(record.length - SUFFIX_BYTES);
    }

    static int changelogNumber(final byte[] record) {
        return ByteBuffer.wrap(record).getInt(record.length - Integer.BYTES);
    }

    /**
     * The greatest of what begins with a key up to {@code key} and ends with {@code suffix}. A key that begins
     * {@code key} may come after it when the suffix is the greater one where they part.
     */
    static byte[] greatest(final byte[] key, final byte[] suffix) {
        byte[] greatest = ByteRange.concat(key, suffix);
        for (int length = key.length - 1; length >= 0; length--) {
            if ((suffix[0] & 0xFF) >= (key[length] & 0xFF)) {
                final byte[] candidate = ByteRange.concat(Arrays.copyOf(key, length), suffix);
                if (Arrays.compareUnsigned(candidate, greatest) > 0) {
                    greatest = candidate;
                }
            }
        }
        return greatest;
    }

    private static byte[] suffixed(final byte[] key, final long start, final int number) {
        return ByteBuffer.allocate(key.length + SUFFIX_BYTES).put(key).putLong(start).putInt(number).array();
    }

    private static byte[] timeBytes(final long time) {
        return ByteBuffer.allocate(Long.BYTES).putLong(time).array();
    }
}

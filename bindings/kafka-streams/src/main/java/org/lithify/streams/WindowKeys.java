package org.lithify.streams;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Keys of window stores. A stored key is the segment, and then what the changelog has: key, window start (eight
 * bytes), sequence number (four bytes).
 *
 * <p>So all windows of a key in a segment are together. The cache of Streams wants this order of a store that is
 * not one of its own: it merges what it holds with what the store returns.
 */
final class WindowKeys {
    private static final int SUFFIX_BYTES = Long.BYTES + Integer.BYTES;

    private WindowKeys() {
    }

    static byte[] encode(final byte[] segment, final byte[] key, final long start, final int number) {
        return ByteBuffer.allocate(segment.length + key.length + SUFFIX_BYTES)
            .put(segment).put(key).putLong(start).putInt(number).array();
    }

    /** The key of a stored key. */
    static byte[] key(final byte[] stored) {
        return Arrays.copyOfRange(stored, SegmentedStore.SEGMENT_BYTES, stored.length - SUFFIX_BYTES);
    }

    /** The window start of a stored key, or of one of the changelog. */
    static long start(final byte[] key) {
        return ByteBuffer.wrap(key).getLong(key.length - SUFFIX_BYTES);
    }

    /** A range in a segment with all windows of {@code key} that start from {@code from} to {@code to}. */
    static ByteRange ofKey(final byte[] key, final long from, final long to) {
        final byte[] none = new byte[0];
        return ByteRange.closed(encode(none, key, from, 0), encode(none, key, to, Integer.MAX_VALUE));
    }

    /** One with all windows up to {@code to} of the keys from {@code first} to {@code last}; null is an open end. */
    static ByteRange ofKeys(final byte[] first, final byte[] last, final long to) {
        final byte[] none = new byte[0];
        return new ByteRange(first,
            last == null ? null : ByteRange.after(greatest(last, encode(none, none, to, Integer.MAX_VALUE))));
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
}

package org.lithify.streams;

import java.util.Arrays;

/**
 * Keys from {@code start} on and before {@code end}; null is an open end.
 *
 * @param start the first key
 * @param end   the first key after the range
 */
record ByteRange(byte[] start, byte[] end) {
    static final ByteRange ALL = new ByteRange(null, null);

    /** From {@code first} to {@code last}, both included. */
    static ByteRange closed(final byte[] first, final byte[] last) {
        return new ByteRange(first, last == null ? null : after(last));
    }

    /** Keys that begin with {@code prefix}. */
    static ByteRange prefix(final byte[] prefix) {
        return new ByteRange(prefix, afterPrefix(prefix));
    }

    /** The least key after {@code key}. */
    static byte[] after(final byte[] key) {
        return Arrays.copyOf(key, key.length + 1);
    }

    /** The least key after all that begin with {@code prefix}; null if there is none. */
    static byte[] afterPrefix(final byte[] prefix) {
        for (int last = prefix.length - 1; last >= 0; last--) {
            if (prefix[last] != (byte) 0xFF) {
                final byte[] end = Arrays.copyOf(prefix, last + 1);
                end[last]++;
                return end;
            }
        }
        return null;
    }

    /** The same range behind {@code prefix}. */
    ByteRange behind(final byte[] prefix) {
        return new ByteRange(start == null ? prefix : concat(prefix, start),
            end == null ? afterPrefix(prefix) : concat(prefix, end));
    }

    boolean isEmpty() {
        return start != null && end != null && Arrays.compareUnsigned(start, end) >= 0;
    }

    static byte[] concat(final byte[] first, final byte[] second) {
        final byte[] both = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, both, first.length, second.length);
        return both;
    }
}

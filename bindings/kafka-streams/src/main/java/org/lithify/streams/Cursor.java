package org.lithify.streams;

import java.lang.ref.Reference;

/**
 * Rows of a family in a range, in one direction, from one consistent state. One thread uses it.
 *
 * <p>Rows come many at a time: a few at first, for most reads of windows take a few, then as many as fit.
 */
final class Cursor implements RowIterator {
    private static final long ROWS_FIRST = 8;
    private static final long ROWS_MAX = 4096;

    private final NativeBuffer buffer = NativeBuffer.take();
    private final int direction;
    private long address;
    private long rowsAtOnce = ROWS_FIRST;
    private long rowsLeft;
    private long at;
    private boolean more = true;
    private byte[] key;
    private byte[] value;

    /**
     * A cursor from {@code start} on and before {@code end}; null is an open end, and a null snapshot is the
     * present.
     */
    Cursor(final Family family, final Snapshot snapshot, final byte[] start, final byte[] end, final boolean forward) {
        direction = forward ? Native.FORWARD : Native.BACKWARD;
        final Scratch scratch = Scratch.get();
        try {
            Native.check((int) Native.CURSOR_OPEN.invokeExact(family.address(),
                snapshot == null ? Native.NULL : snapshot.address(),
                scratch.firstKey(start), start == null ? 0L : (long) start.length,
                scratch.secondKey(end), end == null ? 0L : (long) end.length,
                0, scratch.slot(0), scratch.message()), scratch);
            address = scratch.slotValue(0);
        } catch (final Throwable e) {
            buffer.give();
            throw Native.unexpected(e);
        } finally {
            Reference.reachabilityFence(family);
        }
    }

    @Override
    public boolean next() {
        if (address == Native.NULL || !fillIfEmpty()) {
            key = null;
            value = null;
            return false;
        }
        final int keyLength = buffer.keyLength(at);
        final int valueLength = buffer.valueLength(at);
        key = buffer.bytes(at + 8, keyLength);
        value = buffer.bytes(at + 8 + keyLength, valueLength);
        at += 8L + keyLength + valueLength;
        rowsLeft--;
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
        if (address != Native.NULL) {
            Native.release(Native.CURSOR_FREE, address);
            address = Native.NULL;
            buffer.give();
        }
    }

    /** Whether there is a row in the buffer, after more were fetched if it was empty. */
    private boolean fillIfEmpty() {
        while (rowsLeft == 0) {
            if (!more) {
                return false;
            }
            fill();
        }
        return true;
    }

    private void fill() {
        final Scratch scratch = Scratch.get();
        final int code;
        try {
            code = Native.check((int) Native.CURSOR_FILL.invokeExact(address, direction, rowsAtOnce,
                buffer.address(), buffer.capacity(), scratch.slot(0), scratch.slot(1), scratch.message()), scratch);
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        }
        at = 0;
        if (code == Native.SHORT) {
            buffer.clear();
            buffer.reserve(scratch.slotValue(0));
            return;
        }
        rowsLeft = scratch.slotValue(1);
        more = code != Native.ABSENT;
        rowsAtOnce = Math.min(ROWS_MAX, rowsAtOnce * 4);
    }
}

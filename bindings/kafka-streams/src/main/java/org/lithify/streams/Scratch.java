package org.lithify.streams;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

/**
 * Native memory of a thread for arguments and answers of one call.
 *
 * <p>A few slots of eight bytes for what a function returns through pointers, two areas for keys, and a third
 * for a value. Areas grow and never shrink below what the largest key or value took.
 */
final class Scratch {
    private static final ThreadLocal<Scratch> OF_THREAD = ThreadLocal.withInitial(Scratch::new);
    private static final long VALUE_BYTES_FIRST = 4096;

    private final MemorySegment slots = Arena.ofAuto().allocate(32, 8);
    private MemorySegment first = Arena.ofAuto().allocate(256);
    private MemorySegment second = Arena.ofAuto().allocate(256);
    private MemorySegment value = Arena.ofAuto().allocate(VALUE_BYTES_FIRST);

    private Scratch() {
    }

    static Scratch get() {
        return OF_THREAD.get();
    }

    /** Where the function puts the address of its message. */
    long message() {
        return slots.address();
    }

    /** The address of slot 0 or 1: what a function hands out. */
    long slot(final int index) {
        return slots.address() + 8L + 8L * index;
    }

    long slotValue(final int index) {
        return slots.get(JAVA_LONG, 8L + 8L * index);
    }

    /** The text that the failed call left. */
    String takeMessage() {
        final long address = slots.get(JAVA_LONG, 0);
        if (address == Native.NULL) {
            return "the engine gave no text";
        }
        final String text = Native.text(address);
        Native.free(address);
        slots.set(JAVA_LONG, 0, Native.NULL);
        return text;
    }

    /** Copies a key; NULL for null. */
    long firstKey(final byte[] key) {
        if (key == null) {
            return Native.NULL;
        }
        if (key.length > first.byteSize()) {
            first = Arena.ofAuto().allocate(key.length * 2L);
        }
        MemorySegment.copy(key, 0, first, JAVA_BYTE, 0, key.length);
        return first.address();
    }

    /** Copies another key; NULL for null. */
    long secondKey(final byte[] key) {
        if (key == null) {
            return Native.NULL;
        }
        if (key.length > second.byteSize()) {
            second = Arena.ofAuto().allocate(key.length * 2L);
        }
        MemorySegment.copy(key, 0, second, JAVA_BYTE, 0, key.length);
        return second.address();
    }

    /** The area for a value. */
    MemorySegment value() {
        return value;
    }

    /** Makes the area for a value hold {@code bytes}. */
    MemorySegment growValue(final long bytes) {
        value = Arena.ofAuto().allocate(Math.max(bytes, 2 * value.byteSize()));
        return value;
    }
}

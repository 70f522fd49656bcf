package org.lithify.streams;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.ConcurrentLinkedQueue;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

/**
 * Native memory for rows: filled here for a batch, or by a cursor for its reader.
 *
 * <p>A row is key length, value length, key and value ("Rows in a buffer" of {@code lithify.h}). Buffers of the
 * usual size are reused, as a cursor is opened for nearly every window that an application reads.
 */
final class NativeBuffer {
    static final int BYTES = 64 * 1024;
    private static final int POOLED_MAX = 64;
    private static final ConcurrentLinkedQueue<MemorySegment> POOL = new ConcurrentLinkedQueue<>();
    private static final ValueLayout.OfInt LENGTH = ValueLayout.JAVA_INT_UNALIGNED;

    private MemorySegment memory;
    private long used;

    private NativeBuffer(final MemorySegment memory) {
        this.memory = memory;
    }

    static NativeBuffer take() {
        final MemorySegment pooled = POOL.poll();
        return new NativeBuffer(pooled != null ? pooled : Arena.ofAuto().allocate(BYTES));
    }

    /** Gives the memory back; the buffer must not be used afterwards. */
    void give() {
        if (memory != null && memory.byteSize() == BYTES && POOL.size() < POOLED_MAX) {
            POOL.add(memory);
        }
        memory = null;
    }

    long address() {
        return memory.address();
    }

    long capacity() {
        return memory.byteSize();
    }

    long used() {
        return used;
    }

    void clear() {
        used = 0;
    }

    /** Appends a row; a null value is a removal. The buffer grows. */
    void append(final byte[] key, final byte[] value) {
        final int valueLength = value == null ? 0 : value.length;
        reserve(8L + key.length + valueLength);
        memory.set(LENGTH, used, key.length);
        memory.set(LENGTH, used + 4, value == null ? Native.REMOVAL : valueLength);
        MemorySegment.copy(key, 0, memory, JAVA_BYTE, used + 8, key.length);
        if (value != null) {
            MemorySegment.copy(value, 0, memory, JAVA_BYTE, used + 8 + key.length, valueLength);
        }
        used += 8L + key.length + valueLength;
    }

    /** Makes room for {@code bytes} more, and keeps what is there. */
    void reserve(final long bytes) {
        if (used + bytes <= memory.byteSize()) {
            return;
        }
        final MemorySegment larger = Arena.ofAuto().allocate(Math.max(used + bytes, 2 * memory.byteSize()));
        MemorySegment.copy(memory, 0, larger, 0, used);
        final MemorySegment old = memory;
        memory = larger;
        if (old.byteSize() == BYTES && POOL.size() < POOLED_MAX) {
            POOL.add(old);
        }
    }

    int keyLength(final long at) {
        return memory.get(LENGTH, at);
    }

    int valueLength(final long at) {
        return memory.get(LENGTH, at + 4);
    }

    /** Copies bytes out. */
    byte[] bytes(final long at, final int length) {
        final byte[] copy = new byte[length];
        MemorySegment.copy(memory, JAVA_BYTE, at, copy, 0, length);
        return copy;
    }
}

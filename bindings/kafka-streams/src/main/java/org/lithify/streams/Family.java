package org.lithify.streams;

import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

/** A column family: rows in the order of their keys' unsigned bytes. Any thread may use it. */
final class Family extends Handle {
    private final Database database;

    Family(final Database database, final long address) {
        super(address, Native.FAMILY_FREE);
        this.database = database;
    }

    Database database() {
        return database;
    }

    /** The value of {@code key}; null if there is none. */
    byte[] get(final byte[] key) {
        final Scratch scratch = Scratch.get();
        try {
            final long keyAddress = scratch.firstKey(key);
            MemorySegment value = scratch.value();
            int code = read(scratch, keyAddress, key.length, value);
            while (code == Native.SHORT) {
                value = scratch.growValue(scratch.slotValue(0));
                code = read(scratch, keyAddress, key.length, value);
            }
            if (code == Native.ABSENT) {
                return null;
            }
            final byte[] copy = new byte[(int) scratch.slotValue(0)];
            MemorySegment.copy(value, JAVA_BYTE, 0, copy, 0, copy.length);
            return copy;
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private int read(final Scratch scratch, final long key, final long keyLength, final MemorySegment value) {
        try {
            return Native.check((int) Native.GET_INTO.invokeExact(address(), Native.NULL, key, keyLength,
                value.address(), value.byteSize(), scratch.slot(0), scratch.message()), scratch);
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        }
    }

    /** About how many rows it has. */
    long approximateRows() {
        return approximate(1);
    }

    /** About how many bytes its tables take on disk. */
    long approximateBytes() {
        return approximate(0);
    }

    private long approximate(final int slot) {
        final Scratch scratch = Scratch.get();
        try {
            Native.check((int) Native.APPROXIMATE.invokeExact(address(), Native.NULL, 0L, Native.NULL, 0L,
                scratch.slot(0), scratch.slot(1), scratch.message()), scratch);
            return scratch.slotValue(slot);
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        } finally {
            Reference.reachabilityFence(this);
        }
    }
}

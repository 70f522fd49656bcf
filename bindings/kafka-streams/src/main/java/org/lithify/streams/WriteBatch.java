package org.lithify.streams;

import java.lang.ref.Reference;

/**
 * Writes that become visible together or not at all. One thread uses it.
 *
 * <p>Rows are gathered in a native buffer and cross into the engine many at a time.
 */
final class WriteBatch implements AutoCloseable {
    private static final long GATHERED_BYTES_MAX = 256 * 1024;

    private final Database database;
    private final long address;
    private final NativeBuffer rows = NativeBuffer.take();
    private Family family;
    private long count;

    WriteBatch(final Database database) {
        this.database = database;
        try {
            address = (long) Native.BATCH_NEW.invokeExact();
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        }
    }

    /** Writes a row; a null value removes it. */
    void write(final Family target, final byte[] key, final byte[] value) {
        if (family != target || rows.used() > GATHERED_BYTES_MAX) {
            handOver();
            family = target;
        }
        rows.append(key, value);
        count++;
    }

    /** Removes the keys from {@code start} on and before {@code end}; null is an open end. */
    void deleteRange(final Family target, final byte[] start, final byte[] end) {
        handOver();
        final Scratch scratch = Scratch.get();
        try {
            Native.check((int) Native.BATCH_DELETE_RANGE.invokeExact(address, target.address(),
                scratch.firstKey(start), (long) start.length, scratch.secondKey(end), (long) end.length,
                scratch.message()), scratch);
            count++;
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        } finally {
            Reference.reachabilityFence(target);
        }
    }

    /** How many writes it holds. */
    long count() {
        return count;
    }

    /** Writes everything, in one step; nothing if there is nothing. */
    void commit() {
        handOver();
        if (count == 0) {
            return;
        }
        final Scratch scratch = Scratch.get();
        try {
            Native.check((int) Native.BATCH_COMMIT.invokeExact(database.address(), address,
                Native.DURABILITY_DEFAULT, scratch.message()), scratch);
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        } finally {
            Reference.reachabilityFence(database);
        }
    }

    @Override
    public void close() {
        rows.give();
        Native.release(Native.BATCH_FREE, address);
    }

    private void handOver() {
        if (rows.used() == 0) {
            return;
        }
        final Scratch scratch = Scratch.get();
        try {
            Native.check((int) Native.BATCH_ROWS.invokeExact(address, family.address(), rows.address(), rows.used(),
                scratch.message()), scratch);
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        } finally {
            Reference.reachabilityFence(family);
        }
        rows.clear();
    }
}

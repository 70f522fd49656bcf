package org.lithify.streams;

import java.lang.ref.Reference;

/**
 * Writes that become visible together or not at all; {@link #inParts} is for as many as there may be. One thread
 * uses it.
 *
 * <p>Rows are gathered in a native buffer and cross into the engine many at a time.
 */
final class WriteBatch implements AutoCloseable {
    private static final long GATHERED_BYTES_MAX = 256 * 1024;
    /** A quarter of the least memory that may be set: the engine takes a batch of at most half. */
    private static final long PART_BYTES_MAX = 4 * 1024 * 1024;
    /** The most that the engine logs of a write beside key and value. */
    private static final long WRITE_HEAD_BYTES = 16;

    private final Database database;
    private final long address;
    private final NativeBuffer rows = NativeBuffer.take();
    private final long bytesMax;
    private Family family;
    private long count;
    private long bytes;

    WriteBatch(final Database database) {
        this(database, Long.MAX_VALUE);
    }

    private WriteBatch(final Database database, final long bytesMax) {
        this.database = database;
        this.bytesMax = bytesMax;
        try {
            address = (long) Native.BATCH_NEW.invokeExact();
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        }
    }

    /**
     * A batch that commits what it holds before it would be larger than a part, in the order of the writes. A crash
     * or a failure leaves the first parts.
     */
    static WriteBatch inParts(final Database database) {
        return new WriteBatch(database, PART_BYTES_MAX);
    }

    /** Writes a row; a null value removes it. */
    void write(final Family target, final byte[] key, final byte[] value) {
        begin(key.length + (value == null ? 0L : value.length));
        if (family != target || rows.used() > GATHERED_BYTES_MAX) {
            handOver();
            family = target;
        }
        rows.append(key, value);
    }

    /** Removes the keys from {@code start} on and before {@code end}. */
    void deleteRange(final Family target, final byte[] start, final byte[] end) {
        begin((long) start.length + end.length);
        handOver();
        final Scratch scratch = Scratch.get();
        try {
            Native.check((int) Native.BATCH_DELETE_RANGE.invokeExact(address, target.address(),
                scratch.firstKey(start), (long) start.length, scratch.secondKey(end), (long) end.length,
                scratch.message()), scratch);
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        } finally {
            Reference.reachabilityFence(target);
        }
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

    /** Counts a write of that many bytes, after what was held was committed if the two do not fit together. */
    private void begin(final long keyAndValueBytes) {
        final long more = keyAndValueBytes + WRITE_HEAD_BYTES;
        if (count > 0 && bytes + more > bytesMax) {
            commit();
            Native.release(Native.BATCH_CLEAR, address);
            count = 0;
            bytes = 0;
        }
        count++;
        bytes += more;
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

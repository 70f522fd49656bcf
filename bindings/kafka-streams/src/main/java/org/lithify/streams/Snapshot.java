package org.lithify.streams;

import java.lang.ref.Reference;

/** A state of a database that stays readable while others write. Its owner closes it. */
final class Snapshot implements AutoCloseable {
    private long address;

    Snapshot(final Database database) {
        final Scratch scratch = Scratch.get();
        try {
            address = (long) Native.SNAPSHOT_NEW.invokeExact(database.address(), scratch.message());
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        } finally {
            Reference.reachabilityFence(database);
        }
        if (address == Native.NULL) {
            throw new LithifyException(LithifyException.CLOSED, scratch.takeMessage());
        }
    }

    long address() {
        return address;
    }

    @Override
    public void close() {
        if (address != Native.NULL) {
            Native.release(Native.SNAPSHOT_FREE, address);
            address = Native.NULL;
        }
    }
}

package org.lithify.streams;

import java.util.HashMap;
import java.util.Map;

/**
 * Memory and background threads that all databases of this process share.
 *
 * <p>There is one per pair of settings. The first database that asks makes it and the last that leaves frees it.
 */
final class SharedResources {
    private record Settings(long memoryBytes, int threads) {
    }

    private static final Map<Settings, SharedResources> ALL = new HashMap<>();

    private final Settings settings;
    private final long address;
    private int users;

    private SharedResources(final Settings settings) {
        this.settings = settings;
        final Scratch scratch = Scratch.get();
        try {
            Native.check((int) Native.RESOURCES_NEW.invokeExact(settings.memoryBytes, (long) settings.threads,
                scratch.slot(0), scratch.message()), scratch);
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        }
        address = scratch.slotValue(0);
    }

    static SharedResources acquire(final long memoryBytes, final int threads) {
        synchronized (ALL) {
            final SharedResources resources =
                ALL.computeIfAbsent(new Settings(memoryBytes, threads), SharedResources::new);
            resources.users++;
            return resources;
        }
    }

    void release() {
        synchronized (ALL) {
            users--;
            if (users == 0) {
                ALL.remove(settings);
                Native.release(Native.RESOURCES_FREE, address);
            }
        }
    }

    long address() {
        return address;
    }

    /** Bytes of the budget that are in use; 0 after the last user left. */
    long usedBytes() {
        synchronized (ALL) {
            if (users == 0) {
                return 0;
            }
            try {
                return (long) Native.RESOURCES_USED.invokeExact(address);
            } catch (final Throwable e) {
                throw Native.unexpected(e);
            }
        }
    }
}

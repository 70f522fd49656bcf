package org.lithify.streams;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Memory that the uncommitted writes of all stores of this process take together.
 *
 * <p>An application may have hundreds of stores, and few that are written much at a time. So the bound is for all
 * of them: when it is passed, a store that takes at least its even share makes room with its next write.
 */
final class UncommittedMemory {
    private static final UncommittedMemory OF_PROCESS = new UncommittedMemory();

    private final AtomicLong bytes = new AtomicLong();
    private final AtomicInteger stores = new AtomicInteger();

    static UncommittedMemory ofProcess() {
        return OF_PROCESS;
    }

    void enter() {
        stores.incrementAndGet();
    }

    void leave() {
        stores.decrementAndGet();
    }

    void add(final long more) {
        bytes.addAndGet(more);
    }

    /** Whether a store that takes {@code own} bytes has to make room. */
    boolean isOver(final long own, final long bytesMax) {
        final long all = bytes.get();
        return all > bytesMax && own >= all / Math.max(1, stores.get());
    }

    long bytes() {
        return bytes.get();
    }
}

package org.lithify.streams;

import java.lang.invoke.MethodHandle;
import java.lang.ref.Cleaner;

/**
 * A native object that threads share, freed when nothing refers to it any more.
 *
 * <p>A reader of interactive queries may be inside a call while the stream thread closes the store. So closing
 * only closes; the memory goes when the collector finds the last user gone. Callers hold {@code this} over a
 * call with {@link java.lang.ref.Reference#reachabilityFence}.
 */
abstract class Handle {
    private static final Cleaner CLEANER = Cleaner.create();

    private final long address;

    Handle(final long address, final MethodHandle procedure) {
        this.address = address;
        CLEANER.register(this, () -> Native.release(procedure, address));
    }

    final long address() {
        return address;
    }
}

package org.lithify.streams;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.KeyValueIterator;

import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.Supplier;

/**
 * Rows of a store as Streams wants them. One thread uses it; the store may close it from another.
 */
final class StoreIterator implements KeyValueIterator<Bytes, byte[]> {
    private final LithifyStore store;
    private final Supplier<RowIterator> opening;
    private final boolean quietWhenClosed;
    private RowIterator rows;
    private final Predicate<byte[]> wanted;
    private final Consumer<StoreIterator> onClose;
    private KeyValue<Bytes, byte[]> next;
    private boolean closed;

    /**
     * An iterator over rows that are opened by the first call.
     *
     * @param wanted          whether a row with that key is one of those looked for
     * @param quietWhenClosed whether an iterator that is closed has no next row, or refuses to say
     */
    StoreIterator(final LithifyStore store, final Supplier<RowIterator> opening, final Predicate<byte[]> wanted,
                  final boolean quietWhenClosed, final Consumer<StoreIterator> onClose) {
        this.store = store;
        this.opening = opening;
        this.wanted = wanted;
        this.quietWhenClosed = quietWhenClosed;
        this.onClose = onClose;
    }

    static StoreIterator empty() {
        return new StoreIterator(null, () -> new LayeredIterator(List.of(), true), key -> true, true,
            iterator -> { });
    }

    /** Opens the rows now: what is written later does not show. */
    synchronized StoreIterator open() {
        if (rows == null) {
            rows = opening.get();
        }
        return this;
    }

    @Override
    public synchronized boolean hasNext() {
        if (closed) {
            if (quietWhenClosed) {
                return false;
            }
            throw new InvalidStateStoreException("An iterator of store " + store.name()
                + " is used after it was closed, or after its store was");
        }
        if (next == null && advance()) {
            next = KeyValue.pair(Bytes.wrap(rows.key()), rows.value());
        }
        return next != null;
    }

    @Override
    public synchronized KeyValue<Bytes, byte[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        final KeyValue<Bytes, byte[]> row = next;
        next = null;
        return row;
    }

    @Override
    public synchronized Bytes peekNextKey() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return next.key;
    }

    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            next = null;
            if (rows != null) {
                rows.close();
            }
            onClose.accept(this);
        }
    }

    private boolean advance() {
        try {
            open();
            while (rows.next()) {
                if (wanted.test(rows.key())) {
                    return true;
                }
            }
            return false;
        } catch (final LithifyException e) {
            throw store.failure("reading from", e);
        }
    }
}

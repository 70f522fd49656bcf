package org.lithify.streams;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;

import java.util.function.Function;

/** Rows of a store of windows or sessions, whose stored keys are shown as keys with their windows. */
final class WindowedIterator implements KeyValueIterator<Windowed<Bytes>, byte[]> {
    private final StoreIterator rows;
    private final Function<byte[], Windowed<Bytes>> window;

    WindowedIterator(final StoreIterator rows, final Function<byte[], Windowed<Bytes>> window) {
        this.rows = rows;
        this.window = window;
    }

    @Override
    public boolean hasNext() {
        return rows.hasNext();
    }

    @Override
    public KeyValue<Windowed<Bytes>, byte[]> next() {
        final KeyValue<Bytes, byte[]> row = rows.next();
        return KeyValue.pair(window.apply(row.key.get()), row.value);
    }

    @Override
    public Windowed<Bytes> peekNextKey() {
        return window.apply(rows.peekNextKey().get());
    }

    @Override
    public void close() {
        rows.close();
    }
}

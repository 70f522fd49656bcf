package org.lithify.streams;

import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

import java.util.List;
import java.util.Objects;

/** A key-value store. Keys are ordered by their unsigned bytes. */
class LithifyKeyValueStore extends LithifyStore implements KeyValueStore<Bytes, byte[]> {
    LithifyKeyValueStore(final String name) {
        super(name);
    }

    @Override
    String format() {
        return "key-value plain 1";
    }

    @Override
    byte[] storedKey(final byte[] changelogKey) {
        return changelogKey;
    }

    @Override
    public void put(final Bytes key, final byte[] value) {
        Objects.requireNonNull(key, "key cannot be null");
        requireOpen();
        write(key.get(), value);
    }

    @Override
    public byte[] putIfAbsent(final Bytes key, final byte[] value) {
        Objects.requireNonNull(key, "key cannot be null");
        final byte[] present = get(key);
        if (present == null && value != null) {
            put(key, value);
        }
        return present;
    }

    @Override
    public void putAll(final List<KeyValue<Bytes, byte[]>> entries) {
        entries.forEach(entry -> Objects.requireNonNull(entry.key, "key cannot be null"));
        requireOpen();
        entries.forEach(entry -> check(entry.key.get(), entry.value));
        entries.forEach(entry -> put(entry.key, entry.value));
    }

    @Override
    public byte[] delete(final Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        final byte[] present = get(key);
        put(key, null);
        return present;
    }

    @Override
    public byte[] get(final Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        requireOpen();
        return read(key.get());
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(final Bytes from, final Bytes to) {
        return range(from, to, true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(final Bytes from, final Bytes to) {
        return range(from, to, false);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        requireOpen();
        return iterator(ByteRange.ALL, true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        requireOpen();
        return iterator(ByteRange.ALL, false);
    }

    @Override
    public <S extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(final P prefix,
                                                                                 final S prefixKeySerializer) {
        Objects.requireNonNull(prefix, "prefix cannot be null");
        Objects.requireNonNull(prefixKeySerializer, "prefixKeySerializer cannot be null");
        requireOpen();
        return iterator(ByteRange.prefix(prefixKeySerializer.serialize(null, prefix)), true);
    }

    @Override
    public long approximateNumEntries() {
        requireOpen();
        return guarded("counting", () -> rows().approximateRows());
    }

    private KeyValueIterator<Bytes, byte[]> range(final Bytes from, final Bytes to, final boolean forward) {
        if (from != null && to != null && from.compareTo(to) > 0) {
            return emptyAfterInvertedRange();
        }
        requireOpen();
        return iterator(ByteRange.closed(from == null ? null : from.get(), to == null ? null : to.get()), forward);
    }
}

package org.lithify.streams;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.PositionSerde;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * What a store keeps beside its rows: changelog offsets, its position, its format, and the spill that is
 * committed but not folded into the rows yet.
 *
 * <p>Keys are the store's name, a zero, and then {@code offset} zero topic zero partition, {@code position},
 * {@code format} or {@code fold}. Everything is written in the batch that holds the rows it belongs to.
 */
final class StoreMetadata {
    private final Family family;
    private final String store;

    StoreMetadata(final Family family, final String store) {
        this.family = family;
        this.store = store;
    }

    /** The committed offset; null if there is none. */
    Long offset(final TopicPartition partition) {
        final byte[] value = family.get(offsetKey(partition));
        return value == null ? null : ByteBuffer.wrap(value).getLong();
    }

    Position position() {
        final byte[] value = family.get(key("position"));
        return value == null ? Position.emptyPosition() : PositionSerde.deserialize(ByteBuffer.wrap(value));
    }

    /** The format of the rows; null if there is none yet. */
    String format() {
        final byte[] value = family.get(key("format"));
        return value == null ? null : new String(value, StandardCharsets.UTF_8);
    }

    /** The spill that has to be folded into the rows; null if there is none. */
    byte[] fold() {
        return family.get(key("fold"));
    }

    /** Writes what a commit says of offsets: none forget all, a null value forgets that partition. */
    void writeOffsets(final WriteBatch batch, final Map<TopicPartition, Long> offsets) {
        if (offsets.isEmpty()) {
            final byte[] start = key("offset\0");
            batch.deleteRange(family, start, ByteRange.afterPrefix(start));
            return;
        }
        offsets.forEach((partition, offset) -> batch.write(family, offsetKey(partition),
            offset == null ? null : ByteBuffer.allocate(Long.BYTES).putLong(offset).array()));
    }

    void writePosition(final WriteBatch batch, final Position position) {
        if (!position.isEmpty()) {
            final ByteBuffer encoded = PositionSerde.serialize(position);
            final byte[] value = new byte[encoded.remaining()];
            encoded.get(value);
            batch.write(family, key("position"), value);
        }
    }

    void writeFormat(final WriteBatch batch, final String format) {
        batch.write(family, key("format"), format.getBytes(StandardCharsets.UTF_8));
    }

    void writeFold(final WriteBatch batch, final byte[] spill) {
        batch.write(family, key("fold"), spill);
    }

    /** Forgets everything. */
    void clear(final WriteBatch batch) {
        final byte[] start = key("");
        batch.deleteRange(family, start, ByteRange.afterPrefix(start));
    }

    private byte[] offsetKey(final TopicPartition partition) {
        return key("offset\0" + partition.topic() + "\0" + partition.partition());
    }

    private byte[] key(final String rest) {
        return (store + "\0" + rest).getBytes(StandardCharsets.UTF_8);
    }
}

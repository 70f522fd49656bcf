package org.lithify.streams;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Rows of one generation that did not fit in memory before their commit, in the scratch family of the store.
 *
 * <p>A key there is the generation (eight bytes) and the row's key; a value is one byte, written or removed, and
 * the row's value. Until {@link StoreMetadata#fold} names the generation, nothing of it counts; from then on all
 * of it does. The description that stands there holds the generation and the ranges that were deleted in it.
 */
final class Spill {
    /** What a spilled key has before the row's key. */
    static final int PREFIX_BYTES = Long.BYTES;
    /** What a spilled value has before the row's value. */
    static final int MARK_BYTES = 1;
    private static final byte REMOVED = 0;
    private static final byte WRITTEN = 1;

    private final Family scratch;
    private final long generation;
    private final byte[] prefix;

    Spill(final Family scratch, final long generation) {
        this.scratch = scratch;
        this.generation = generation;
        this.prefix = ByteBuffer.allocate(PREFIX_BYTES).putLong(generation).array();
    }

    /** Adds the rows of an overlay, in parts: until they are named nothing of them counts. */
    void add(final Overlay overlay) {
        try (WriteBatch batch = WriteBatch.inParts(scratch.database())) {
            overlay.entries().forEach(row -> batch.write(scratch, ByteRange.concat(prefix, row.getKey()),
                row.getValue() == Overlay.REMOVED ? new byte[] {REMOVED} : written(row.getValue())));
            batch.commit();
        }
    }

    /** Takes back the rows of a range. */
    void deleteRange(final ByteRange range) {
        try (WriteBatch batch = new WriteBatch(scratch.database())) {
            final ByteRange inScratch = range.behind(prefix);
            batch.deleteRange(scratch, inScratch.start(), inScratch.end());
            batch.commit();
        }
    }

    /** The value, {@link Overlay#REMOVED}, or null if it says nothing of that key. */
    byte[] get(final byte[] key) {
        final byte[] stored = scratch.get(ByteRange.concat(prefix, key));
        if (stored == null) {
            return null;
        }
        return stored[0] == REMOVED ? Overlay.REMOVED : Arrays.copyOfRange(stored, MARK_BYTES, stored.length);
    }

    RowIterator iterator(final ByteRange range, final Snapshot snapshot, final boolean forward) {
        final ByteRange inScratch = range.behind(prefix);
        return new Rows(new Cursor(scratch, snapshot, inScratch.start(), inScratch.end(), forward));
    }

    /** What the metadata keep of a spill between its commit and the end of its fold. */
    byte[] description(final List<ByteRange> deletedRanges) {
        final int bytes = deletedRanges.stream().mapToInt(r -> 8 + r.start().length + r.end().length).sum();
        final ByteBuffer buffer = ByteBuffer.allocate(Long.BYTES + Integer.BYTES + bytes);
        buffer.putLong(generation).putInt(deletedRanges.size());
        for (final ByteRange range : deletedRanges) {
            buffer.putInt(range.start().length).put(range.start());
            buffer.putInt(range.end().length).put(range.end());
        }
        return buffer.array();
    }

    static long generationOf(final byte[] description) {
        return ByteBuffer.wrap(description).getLong();
    }

    /**
     * Moves the rows of a committed spill where they belong, then forgets the spill. A fold that was cut off is
     * simply done again.
     */
    void fold(final byte[] description, final Family rows, final StoreMetadata metadata) {
        try (WriteBatch batch = WriteBatch.inParts(rows.database());
             RowIterator spilled = iterator(ByteRange.ALL, null, true)) {
            for (final ByteRange range : deletedRanges(description)) {
                batch.deleteRange(rows, range.start(), range.end());
            }
            while (spilled.next()) {
                batch.write(rows, spilled.key(), spilled.value());
            }
            batch.commit();
        }
        try (WriteBatch batch = new WriteBatch(rows.database())) {
            batch.deleteRange(scratch, prefix, ByteRange.afterPrefix(prefix));
            metadata.writeFold(batch, null);
            batch.commit();
        }
    }

    private static List<ByteRange> deletedRanges(final byte[] description) {
        final ByteBuffer buffer = ByteBuffer.wrap(description);
        buffer.getLong();
        final int count = buffer.getInt();
        final List<ByteRange> ranges = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            final byte[] start = new byte[buffer.getInt()];
            buffer.get(start);
            final byte[] end = new byte[buffer.getInt()];
            buffer.get(end);
            ranges.add(new ByteRange(start, end));
        }
        return ranges;
    }

    private static byte[] written(final byte[] value) {
        final byte[] stored = new byte[MARK_BYTES + value.length];
        stored[0] = WRITTEN;
        System.arraycopy(value, 0, stored, MARK_BYTES, value.length);
        return stored;
    }

    /** Rows of the scratch family as they were written. */
    private record Rows(Cursor cursor) implements RowIterator {
        @Override
        public boolean next() {
            return cursor.next();
        }

        @Override
        public byte[] key() {
            return Arrays.copyOfRange(cursor.key(), PREFIX_BYTES, cursor.key().length);
        }

        @Override
        public byte[] value() {
            final byte[] stored = cursor.value();
            return stored[0] == REMOVED ? null : Arrays.copyOfRange(stored, MARK_BYTES, stored.length);
        }

        @Override
        public void close() {
            cursor.close();
        }
    }
}

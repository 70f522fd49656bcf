package org.lithify.streams;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.query.Position;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The rows of one store: what is committed, in the engine, and over it what is not.
 *
 * <p>How a write becomes state on disk:
 * <ol>
 *   <li>It goes into the {@link Overlay}. Readers see the overlay over the committed rows.</li>
 *   <li>A commit writes the overlay, the changelog offsets and the position in one batch of the engine. So the
 *       state on disk is always exactly that of one commit, whatever ends the process.</li>
 *   <li>An overlay beyond the bound, or too large for one batch, moves to the scratch family ({@link Spill}). Its
 *       commit is the batch that names it; its rows then move to their place in bounded batches. A crash before that
 *       batch drops it, and one after it finishes the move at the next opening.</li>
 *   <li>Where nothing can be rolled back (at-least-once), such an overlay is written as it is, in bounded batches.
 *       Offsets follow with the commit.</li>
 * </ol>
 *
 * <p>One thread writes at a time; any number read. A reader takes the overlay first and the engine's state
 * second, a commit writes them the other way round: a row on its way is seen at least once, in either.
 */
final class StoreRows {
    private static final Logger LOG = LoggerFactory.getLogger(StoreRows.class);

    private final TaskDatabase database;
    private final Family rows;
    private final StoreMetadata metadata;
    private final String store;
    private final long uncommittedMaxBytes;
    private final boolean transactional;
    private final UncommittedMemory memory = UncommittedMemory.ofProcess();
    private volatile Overlay overlay = new Overlay(null);
    private long generation;
    private boolean unsound;
    private boolean closed;
    private volatile long spills;
    private volatile long commits;

    /**
     * Opens the rows of a store: finishes a commit that was cut off, and drops what was not committed.
     *
     * @param format        the format of keys and values; rows of another one are dropped
     * @param transactional whether writes since the last commit must not survive a crash
     */
    StoreRows(final TaskDatabase database, final String store, final String format, final long uncommittedMaxBytes,
              final boolean transactional) {
        this.database = database;
        this.store = store;
        this.uncommittedMaxBytes = uncommittedMaxBytes;
        this.transactional = transactional;
        rows = database.rows(store);
        metadata = new StoreMetadata(database.metadata(), store);
        recoverSpill();
        keepOnly(format);
        memory.enter();
    }

    StoreMetadata metadata() {
        return metadata;
    }

    byte[] get(final byte[] key) {
        final Overlay uncommitted = overlay;
        byte[] value = uncommitted.get(key);
        if (value == null && uncommitted.under() != null) {
            value = uncommitted.under().get(key);
        }
        if (value == null) {
            return rows.get(key);
        }
        return value == Overlay.REMOVED ? null : value;
    }

    /**
     * Writes a row, a copy of it; a null value removes it.
     *
     * @throws LithifyException if the row is over the limits; then nothing was written
     */
    synchronized void put(final byte[] key, final byte[] value) {
        requireSound();
        check(key, value);
        memory.add(overlay.put(key, value));
        if (memory.isOver(overlay.bytes(), uncommittedMaxBytes)) {
            makeRoom();
        }
    }

    /** Removes the rows of a range. No row may be written there before the next commit. */
    synchronized void deleteRange(final ByteRange range) {
        memory.add(overlay.deleteRange(range));
        if (overlay.under() != null) {
            overlay.under().deleteRange(range);
        }
    }

    /** The rows of {@code ranges}, one range after the other, as they are now. */
    synchronized RowIterator iterator(final List<ByteRange> ranges, final boolean forward) {
        if (ranges.size() == 1) {
            return iterator(ranges.getFirst(), null, forward);
        }
        return new ConsecutiveIterator(ranges, forward, this);
    }

    /** What lies over the committed rows in a range; later writes do not show. Null if there is nothing. */
    RowIterator uncommitted(final ByteRange range, final boolean forward) {
        return overlay.copy(range, forward);
    }

    /** Rows of one range, of a snapshot or of the present. */
    RowIterator iterator(final ByteRange range, final Snapshot snapshot, final boolean forward) {
        return iterator(range, overlay.copy(range, forward), overlay.under(), snapshot, forward);
    }

    /** Rows of one range: {@code uncommitted} over those of {@code under} over the committed ones. */
    RowIterator iterator(final ByteRange range, final RowIterator uncommitted, final Spill under,
                         final Snapshot snapshot, final boolean forward) {
        if (range.isEmpty()) {
            return new LayeredIterator(List.of(), forward);
        }
        final List<RowIterator> layers = new ArrayList<>(3);
        if (uncommitted != null) {
            layers.add(uncommitted);
        }
        if (under != null) {
            layers.add(under.iterator(range, snapshot, forward));
        }
        try {
            layers.add(new Cursor(rows, snapshot, range.start(), range.end(), forward));
        } catch (final RuntimeException e) {
            layers.forEach(RowIterator::close);
            throw e;
        }
        return layers.size() == 1 ? layers.getFirst() : new LayeredIterator(layers, forward);
    }

    /** The present spill, for an iterator that opens its ranges one by one; null if there is none. */
    Spill openSpill() {
        return overlay.under();
    }

    Snapshot snapshot() {
        return new Snapshot(rows.database());
    }

    /**
     * Commits all writes so far with the offsets that they stand for.
     *
     * @param offsets what to write of offsets; null keeps them as they are, an empty map forgets them
     */
    synchronized void commit(final Map<TopicPartition, Long> offsets, final Position position) {
        requireSound();
        if (overlay.bytes() > database.limits().commitBytesMax()) {
            makeRoom();
        }
        if (overlay.under() != null) {
            commitSpill(overlay.under(), offsets, position);
        } else {
            try (WriteBatch batch = new WriteBatch(rows.database())) {
                writeOverlay(batch);
                writeMetadata(batch, offsets, position);
                batch.commit();
            }
        }
        commits++;
        replaceOverlay(new Overlay(null));
    }

    /** Refuses a row that {@link #put} would refuse. */
    void check(final byte[] key, final byte[] value) {
        database.limits().check(key, value);
    }

    /**
     * Writes rows of a changelog: they are committed already. Null values are removals. A crash may leave the first
     * of them; the offset does not move, so that they are restored again.
     */
    synchronized void restore(final List<byte[]> keysAndValues, final List<ByteRange> expired) {
        for (int i = 0; i < keysAndValues.size(); i += 2) {
            check(keysAndValues.get(i), keysAndValues.get(i + 1));
        }
        if (!isClean()) {
            // Writes that are newer than what is restored would be hidden if they were beneath it.
            for (int i = 0; i < keysAndValues.size(); i += 2) {
                put(keysAndValues.get(i), keysAndValues.get(i + 1));
            }
            expired.forEach(this::deleteRange);
            return;
        }
        try (WriteBatch batch = WriteBatch.inParts(rows.database())) {
            for (int i = 0; i < keysAndValues.size(); i += 2) {
                batch.write(rows, keysAndValues.get(i), keysAndValues.get(i + 1));
            }
            expired.forEach(range -> batch.deleteRange(rows, range.start(), range.end()));
            batch.commit();
        }
    }

    /** Drops what is not committed, or writes it where that is as good. Does nothing the second time. */
    synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        try {
            if (!transactional && !unsound && !overlay.isEmpty()) {
                commit(null, Position.emptyPosition());
            }
        } finally {
            replaceOverlay(new Overlay(null));
            memory.leave();
        }
    }

    /** Whether everything is committed. */
    boolean isClean() {
        return overlay.isEmpty() && overlay.under() == null;
    }

    long uncommittedBytes() {
        return overlay.bytes();
    }

    long spills() {
        return spills;
    }

    long commits() {
        return commits;
    }

    long diskBytes() {
        return rows.approximateBytes();
    }

    /** About how many rows there are. A row that is written anew counts twice for a while. */
    long approximateRows() {
        return rows.approximateRows() + overlay.count();
    }

    private void makeRoom() {
        if (!transactional) {
            try (WriteBatch batch = WriteBatch.inParts(rows.database())) {
                writeOverlay(batch);
                batch.commit();
            }
            replaceOverlay(new Overlay(null));
            return;
        }
        Spill spill = overlay.under();
        if (spill == null) {
            generation++;
            spill = new Spill(database.scratch(store), generation);
        }
        spills++;
        spill.add(overlay);
        final Overlay emptied = new Overlay(spill);
        emptied.deletedRanges().addAll(overlay.deletedRanges());
        replaceOverlay(emptied);
    }

    private void commitSpill(final Spill spill, final Map<TopicPartition, Long> offsets, final Position position) {
        spill.add(overlay);
        final byte[] description = spill.description(overlay.deletedRanges());
        try (WriteBatch batch = new WriteBatch(rows.database())) {
            metadata.writeFold(batch, description);
            writeMetadata(batch, offsets, position);
            batch.commit();
        }
        // From here on the spill counts. Rows that came into it after a fold that failed would count, too.
        unsound = true;
        spill.fold(description, rows, metadata);
        unsound = false;
    }

    private void replaceOverlay(final Overlay next) {
        memory.add(-overlay.bytes());
        overlay = next;
    }

    private void requireSound() {
        if (unsound) {
            throw new LithifyException(LithifyException.IO,
                "store " + store + " could not finish a commit; its next opening does");
        }
    }

    private void writeOverlay(final WriteBatch batch) {
        overlay.deletedRanges().forEach(range -> batch.deleteRange(rows, range.start(), range.end()));
        overlay.entries().forEach(row ->
            batch.write(rows, row.getKey(), row.getValue() == Overlay.REMOVED ? null : row.getValue()));
    }

    private void writeMetadata(final WriteBatch batch, final Map<TopicPartition, Long> offsets,
                               final Position position) {
        if (offsets != null) {
            metadata.writeOffsets(batch, offsets);
        }
        metadata.writePosition(batch, position);
    }

    /** Finishes the fold of a spill that was committed, and empties the scratch family. */
    private void recoverSpill() {
        final byte[] description = metadata.fold();
        final Family scratch = database.existingScratch(store);
        if (description != null) {
            if (scratch == null) {
                throw new LithifyException(LithifyException.CORRUPTION,
                    "store " + store + " has a committed spill, and no scratch family");
            }
            new Spill(scratch, Spill.generationOf(description)).fold(description, rows, metadata);
        }
        if (scratch != null) {
            clear(scratch);
        }
    }

    /** Removes all rows. The last one alone: the end of a range behind the longest key would be too long. */
    private static void clear(final Family family) {
        try (Cursor last = new Cursor(family, null, null, null, false)) {
            if (!last.next()) {
                return;
            }
            try (WriteBatch batch = new WriteBatch(family.database())) {
                batch.deleteRange(family, new byte[0], last.key());
                batch.write(family, last.key(), null);
                batch.commit();
            }
        }
    }

    /** Drops rows and offsets of another format, and notes this one. */
    private void keepOnly(final String format) {
        final String found = metadata.format();
        if (format.equals(found)) {
            return;
        }
        if (found != null) {
            LOG.warn("Store {} holds rows of format {} and is opened with {}: it is restored from its changelog",
                store, found, format);
            clear(rows);
        }
        try (WriteBatch batch = new WriteBatch(rows.database())) {
            if (found != null) {
                metadata.clear(batch);
            }
            metadata.writeFormat(batch, format);
            batch.commit();
        }
    }
}

package org.lithify.streams;

import java.util.ArrayList;
import java.util.List;

/**
 * Rows of several ranges, one range after the other, of one state.
 *
 * <p>A range is opened when the one before it is through: most readers of many ranges stop early. The state is
 * that of the creation: a snapshot of the engine, and copies of what lies over it.
 */
final class ConsecutiveIterator implements RowIterator {
    private final List<ByteRange> ranges;
    private final List<RowIterator> uncommitted;
    private final boolean forward;
    private final StoreRows rows;
    private final Spill spill;
    private final Snapshot snapshot;
    private RowIterator current;
    private int opened;

    /** The caller holds the lock of {@code rows}. */
    ConsecutiveIterator(final List<ByteRange> ranges, final boolean forward, final StoreRows rows) {
        this.ranges = ranges;
        this.forward = forward;
        this.rows = rows;
        this.uncommitted = new ArrayList<>(ranges.size());
        ranges.forEach(range -> uncommitted.add(rows.uncommitted(range, forward)));
        this.spill = rows.openSpill();
        this.snapshot = ranges.isEmpty() ? null : rows.snapshot();
    }

    @Override
    public boolean next() {
        while (current == null || !current.next()) {
            if (opened == ranges.size()) {
                return false;
            }
            if (current != null) {
                current.close();
            }
            current = rows.iterator(ranges.get(opened), uncommitted.get(opened), spill, snapshot, forward);
            opened++;
        }
        return true;
    }

    @Override
    public byte[] key() {
        return current.key();
    }

    @Override
    public byte[] value() {
        return current.value();
    }

    @Override
    public void close() {
        if (current != null) {
            current.close();
        }
        if (snapshot != null) {
            snapshot.close();
        }
    }
}

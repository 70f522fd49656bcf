package org.lithify.streams;

/** Rows one after another. A null value stands for a removal, which only layers over others have. */
interface RowIterator extends AutoCloseable {
    /** Moves on; false if there is no further row. */
    boolean next();

    /** The key of the row that it stands on. */
    byte[] key();

    /** The value of the row that it stands on. */
    byte[] value();

    @Override
    void close();
}

package org.lithify.streams;

/**
 * A failure of the storage engine, with its code and its text.
 *
 * <p>Stores turn it into the exception that Kafka Streams acts on; this one is its cause.
 */
public final class LithifyException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Stored bytes are not what was written. */
    static final int CORRUPTION = -5;
    /** A newer version wrote the file. */
    static final int UNSUPPORTED = -6;
    /** A row or a batch is larger than it may be. */
    static final int LIMIT_EXCEEDED = -2;
    /** The path does not hold a database. */
    static final int NOT_FOUND = -3;
    /** The operating system refused or failed a call. */
    static final int IO = -7;
    /** Another process, or another handle of this one, has the database open. */
    static final int LOCKED = -9;
    /** The database or family is closed. */
    static final int CLOSED = -13;

    /** The code of {@code lithify.h}. */
    private final int code;

    LithifyException(final int code, final String message) {
        super(message);
        this.code = code;
    }

    /**
     * The code of {@code lithify.h}, a negative number.
     *
     * @return the code
     */
    public int code() {
        return code;
    }

    /** Whether the directory cannot be used as it is, so that its state has to be restored anew. */
    boolean isDamage() {
        return code == CORRUPTION || code == UNSUPPORTED || code == NOT_FOUND;
    }
}

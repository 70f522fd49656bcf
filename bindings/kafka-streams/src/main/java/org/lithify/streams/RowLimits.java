package org.lithify.streams;

/**
 * How large a row and a commit may be in databases of so much memory.
 *
 * <p>One limit holds for all rows, whether they are spilled or not: a row that was taken can be committed.
 */
final class RowLimits {
    /** The engine's limits. */
    private static final int ENGINE_KEY_BYTES_MAX = 65_535;
    private static final long ENGINE_VALUE_BYTES_MAX = 64L * 1024 * 1024;
    private static final int KEY_BYTES_MAX = ENGINE_KEY_BYTES_MAX - Spill.PREFIX_BYTES;
    /** The engine's batch takes half of the memory; beside its value, a row has at most this in it. */
    private static final long BESIDE_VALUE_BYTES = 128 * 1024;
    /** No batch of the engine is larger than 1 GiB, whatever the memory. */
    private static final long COMMIT_BYTES_MAX = 512L * 1024 * 1024;

    private final long memoryBytes;
    private final long valueBytesMax;

    RowLimits(final long memoryBytes) {
        this.memoryBytes = memoryBytes;
        valueBytesMax = Math.min(ENGINE_VALUE_BYTES_MAX - Spill.MARK_BYTES, memoryBytes / 2 - BESIDE_VALUE_BYTES);
    }

    /**
     * Refuses a row that is too large.
     *
     * @param key   the key as it is stored
     * @param value the value, or null for a removal
     */
    void check(final byte[] key, final byte[] value) {
        if (key.length > KEY_BYTES_MAX) {
            throw refusal("a key is too long", KEY_BYTES_MAX, key.length);
        }
        if (value != null && value.length > valueBytesMax) {
            final boolean engine = valueBytesMax == ENGINE_VALUE_BYTES_MAX - Spill.MARK_BYTES;
            throw refusal(engine ? "a value is too long"
                : "a value is too long for " + LithifyConfig.MEMORY_BYTES_CONFIG + "=" + memoryBytes,
                valueBytesMax, value.length);
        }
    }

    /** The most bytes of rows in one batch: half of what it takes. Offsets and positions come beside them. */
    long commitBytesMax() {
        return Math.min(memoryBytes / 4, COMMIT_BYTES_MAX);
    }

    private static LithifyException refusal(final String what, final long bytesMax, final long found) {
        return new LithifyException(LithifyException.LIMIT_EXCEEDED,
            "limit exceeded: " + what + ": expected at most " + bytesMax + " bytes, found " + found);
    }
}

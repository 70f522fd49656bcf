package org.lithify.streams;

import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Type;

import java.util.Locale;
import java.util.Map;

import static org.apache.kafka.common.config.ConfigDef.Range.atLeast;
import static org.apache.kafka.common.config.ConfigDef.Range.between;

/**
 * Settings of Lithify's stores. They stand among those of Kafka Streams.
 */
public final class LithifyConfig extends AbstractConfig {
    /** {@code lithify.memory.bytes}. */
    public static final String MEMORY_BYTES_CONFIG = "lithify.memory.bytes";
    private static final String MEMORY_BYTES_DOC = "Memory for caches, memtables, filters and compactions of all "
        + "stores of this process together.";
    /** {@code lithify.background.threads}. */
    public static final String BACKGROUND_THREADS_CONFIG = "lithify.background.threads";
    private static final String BACKGROUND_THREADS_DOC = "Threads that flush and compact, for all stores of this "
        + "process together.";
    /** {@code lithify.compression}. */
    public static final String COMPRESSION_CONFIG = "lithify.compression";
    private static final String COMPRESSION_DOC = "Compression of the tables: a codec (none, lz4, zstd-1, zstd-9, …), "
        + "one per distance from the bottom (none,lz4,zstd-1), or auto, auto:space, auto:throughput, auto:endurance. "
        + "Empty: the engine's default.";
    /** {@code lithify.uncommitted.max.bytes}. */
    public static final String UNCOMMITTED_MAX_BYTES_CONFIG = "lithify.uncommitted.max.bytes";
    private static final String UNCOMMITTED_MAX_BYTES_DOC = "Heap for writes since the last commit, of all "
        + "stores of this process together. Beyond it they go to disk: under exactly-once to a scratch area, from "
        + "where the commit takes them.";
    /** {@code lithify.durability}. */
    public static final String DURABILITY_CONFIG = "lithify.durability";
    private static final String DURABILITY_DOC = "What a commit survives: buffered (the end of the process), sync "
        + "(a power cut too), or none (neither: the store restores from its last flush). The offset never gets ahead "
        + "of the rows in any of them.";

    /** Every task has a database: what the engine takes for one alone would be too much for each. */
    private static final long WAL_BYTES_MAX = 64L * 1024 * 1024;
    private static final long MEMTABLE_BYTES_MAX = 16L * 1024 * 1024;

    private static final ConfigDef DEFINITION = new ConfigDef()
        .define(MEMORY_BYTES_CONFIG, Type.LONG, 256L * 1024 * 1024, atLeast(16L * 1024 * 1024), Importance.HIGH,
            MEMORY_BYTES_DOC)
        .define(BACKGROUND_THREADS_CONFIG, Type.INT, 2, between(1, 64), Importance.MEDIUM, BACKGROUND_THREADS_DOC)
        .define(COMPRESSION_CONFIG, Type.STRING, "", Importance.MEDIUM, COMPRESSION_DOC)
        .define(UNCOMMITTED_MAX_BYTES_CONFIG, Type.LONG, 64L * 1024 * 1024, between(0, 512L * 1024 * 1024),
            Importance.MEDIUM, UNCOMMITTED_MAX_BYTES_DOC)
        .define(DURABILITY_CONFIG, Type.STRING, "buffered", ConfigDef.ValidString.in("buffered", "sync", "none"),
            Importance.MEDIUM, DURABILITY_DOC);

    /**
     * Reads the settings.
     *
     * @param configs the application's configuration, with Streams' settings among it
     */
    public LithifyConfig(final Map<?, ?> configs) {
        super(DEFINITION, configs, false);
    }

    /**
     * The settings with their types, defaults and texts.
     *
     * @return a definition of its own
     */
    public static ConfigDef configDef() {
        return new ConfigDef(DEFINITION);
    }

    long memoryBytes() {
        return getLong(MEMORY_BYTES_CONFIG);
    }

    int backgroundThreads() {
        return getInt(BACKGROUND_THREADS_CONFIG);
    }

    long uncommittedMaxBytes() {
        return getLong(UNCOMMITTED_MAX_BYTES_CONFIG);
    }

    /** Options of the engine for a database. */
    Map<String, String> databaseOptions() {
        return Map.of("durability", getString(DURABILITY_CONFIG).toLowerCase(Locale.ROOT),
            "memtable_bytes", String.valueOf(Math.min(MEMTABLE_BYTES_MAX, memoryBytes() / 16)),
            "wal_bytes_max", String.valueOf(WAL_BYTES_MAX));
    }

    /** Options of the engine for the rows of a store. */
    Map<String, String> familyOptions() {
        final String compression = getString(COMPRESSION_CONFIG);
        return compression.isBlank() ? Map.of() : Map.of("compression", compression.strip());
    }
}

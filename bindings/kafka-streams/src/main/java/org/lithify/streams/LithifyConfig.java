package org.lithify.streams;

import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigException;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

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
        + "one per distance from the bottom (none,lz4,zstd-1), or auto, auto:space, auto:throughput, auto:endurance.";
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

    /** {@code lithify.options}. */
    public static final String OPTIONS_CONFIG = "lithify.options";
    private static final String OPTIONS_DOC = "Options of the engine for databases and their column families, as in "
        + "its documents: block_size_bytes=4KiB filter_bits_per_key=12. They override what the other settings stand for.";

    /** Every task has a database: what the engine takes for one alone would be too much for each. */
    private static final long WAL_BYTES_MAX = 64L * 1024 * 1024;
    private static final long MEMTABLE_BYTES_MAX = 16L * 1024 * 1024;

    /** Options that have a setting here, or with which stores would lose rows or answer wrongly. */
    private static final Set<String> NOT_FOR_STORES = Set.of("memory_budget_bytes", "background_threads",
        "durability", "create_if_missing", "time_to_live_s", "merge_operator");

    /**
     * Streams reads the old value for each update, so each record decodes a block. Beside the engine's own default,
     * lz4 at the bottom takes 0.69 of the application's CPU, and 1.17 of the disk, with 1 GiB of state.
     */
    private static final String COMPRESSION_DEFAULT = "none,lz4,lz4";

    private static final ConfigDef DEFINITION = new ConfigDef()
        .define(MEMORY_BYTES_CONFIG, Type.LONG, 256L * 1024 * 1024, atLeast(16L * 1024 * 1024), Importance.HIGH,
            MEMORY_BYTES_DOC)
        .define(BACKGROUND_THREADS_CONFIG, Type.INT, 2, between(1, 64), Importance.MEDIUM, BACKGROUND_THREADS_DOC)
        .define(COMPRESSION_CONFIG, Type.STRING, COMPRESSION_DEFAULT, Importance.MEDIUM, COMPRESSION_DOC)
        .define(UNCOMMITTED_MAX_BYTES_CONFIG, Type.LONG, 64L * 1024 * 1024, between(0, 512L * 1024 * 1024),
            Importance.MEDIUM, UNCOMMITTED_MAX_BYTES_DOC)
        .define(DURABILITY_CONFIG, Type.STRING, "buffered", ConfigDef.ValidString.in("buffered", "sync", "none"),
            Importance.MEDIUM, DURABILITY_DOC)
        .define(OPTIONS_CONFIG, Type.STRING, "", ConfigDef.LambdaValidator.with(
            (name, value) -> options(String.valueOf(value)), () -> "name=value name=value …"),
            Importance.LOW, OPTIONS_DOC);

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
        final Map<String, String> chosen = new LinkedHashMap<>(Map.of(
            "durability", getString(DURABILITY_CONFIG).toLowerCase(Locale.ROOT),
            "memtable_bytes", String.valueOf(Math.min(MEMTABLE_BYTES_MAX, memoryBytes() / 16)),
            "wal_bytes_max", String.valueOf(WAL_BYTES_MAX)));
        chosen.putAll(options(Database.optionNames()::contains));
        return chosen;
    }

    /** Options of the engine for the rows of a store. */
    Map<String, String> familyOptions() {
        final Map<String, String> chosen = new LinkedHashMap<>();
        final String compression = getString(COMPRESSION_CONFIG);
        if (!compression.isBlank()) {
            chosen.put("compression", compression.strip());
        }
        chosen.putAll(options(Predicate.not(Database.optionNames()::contains)));
        return chosen;
    }

    /** Those of {@code lithify.options} whose name is one of {@code names}. */
    private Map<String, String> options(final Predicate<String> names) {
        final Map<String, String> chosen = options(getString(OPTIONS_CONFIG));
        chosen.keySet().removeIf(names.negate());
        return chosen;
    }

    private static Map<String, String> options(final String text) {
        final Map<String, String> options = new LinkedHashMap<>();
        for (final String option : text.strip().split("\\s+")) {
            if (option.isEmpty()) {
                continue;
            }
            final String[] pair = option.split("=", 2);
            if (pair.length < 2 || pair[0].isEmpty()) {
                throw new ConfigException(OPTIONS_CONFIG, text, "\"" + option + "\" is not name=value");
            }
            if (NOT_FOR_STORES.contains(pair[0])) {
                throw new ConfigException(OPTIONS_CONFIG, text, "the stores themselves set " + pair[0]);
            }
            options.put(pair[0], pair[1]);
        }
        return options;
    }
}

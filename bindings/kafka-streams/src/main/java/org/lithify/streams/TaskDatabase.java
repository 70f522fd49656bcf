package org.lithify.streams;

import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.errors.LockException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * The one database of a task directory, which all stores of the task share.
 *
 * <p>The first store that opens makes it, the last that closes closes it. Families: one per store for its rows,
 * one for offsets and positions of all stores ({@link StoreMetadata}), and, while a store spills, one for that.
 * Streams locks, moves and removes directories per task; so no database spans two of them.
 */
final class TaskDatabase {
    static final String DIRECTORY = "lithify";
    static final String DAMAGED_DIRECTORY = "lithify.damaged";
    private static final String METADATA_FAMILY = "streams";
    private static final Logger LOG = LoggerFactory.getLogger(TaskDatabase.class);
    private static final Map<Path, TaskDatabase> OPEN = new HashMap<>();

    private final Path directory;
    private final SharedResources resources;
    private final RowLimits limits;
    private final Map<String, String> familyOptions;
    private final Database database;
    private final Family metadata;
    private final Set<String> stores = new HashSet<>();
    private volatile boolean damaged;

    private TaskDatabase(final Path directory, final LithifyConfig config) {
        this.directory = directory;
        familyOptions = config.familyOptions();
        limits = new RowLimits(config.memoryBytes());
        resources = SharedResources.acquire(config.memoryBytes(), config.backgroundThreads());
        Database opened = null;
        try {
            Files.createDirectories(directory);
            opened = Database.open(directory, config.databaseOptions(), resources);
            database = opened;
            metadata = database.family(METADATA_FAMILY, Map.of());
        } catch (final IOException | RuntimeException e) {
            if (opened != null) {
                opened.close();
            }
            resources.release();
            throw e instanceof RuntimeException failure ? failure
                : new LithifyException(LithifyException.IO, directory + " cannot be made: " + e.getMessage());
        }
    }

    /**
     * Opens the database of a task directory for a store, or joins those that have it open.
     *
     * @param setAsideDamage what to do with a database that cannot be read: move it aside and begin with an empty
     *                       one, or fail
     * @throws LockException    if this store of this directory is open already, or another process has it
     * @throws LithifyException if the database cannot be opened
     */
    static TaskDatabase acquire(final Path taskDirectory, final String store, final LithifyConfig config,
                                final boolean setAsideDamage) {
        final Path directory = taskDirectory.toAbsolutePath().normalize().resolve(DIRECTORY);
        synchronized (OPEN) {
            TaskDatabase open = OPEN.get(directory);
            if (open == null) {
                open = open(directory, config, setAsideDamage);
                OPEN.put(directory, open);
            }
            if (!open.stores.add(store)) {
                throw new LockException("Store " + store + " in " + directory + " is open already");
            }
            return open;
        }
    }

    private static TaskDatabase open(final Path directory, final LithifyConfig config, final boolean setAsideDamage) {
        try {
            return new TaskDatabase(directory, config);
        } catch (final LithifyException e) {
            if (e.code() == LithifyException.LOCKED) {
                throw new LockException("The state in " + directory + " is in use: " + e.getMessage(), e);
            }
            if (!e.isDamage() || !setAsideDamage) {
                throw e;
            }
            LOG.error("The state in {} cannot be read and is restored from the changelogs", directory, e);
            setAside(directory);
            return new TaskDatabase(directory, config);
        }
    }

    /** Leaves the database; the last store closes it. */
    void release(final String store) {
        synchronized (OPEN) {
            stores.remove(store);
            if (!stores.isEmpty()) {
                return;
            }
            OPEN.remove(directory, this);
            try {
                database.close();
            } finally {
                resources.release();
            }
            if (damaged) {
                setAside(directory);
            }
        }
    }

    /** Has the directory moved aside when the last store leaves: its next opening begins empty. */
    void markDamaged() {
        damaged = true;
    }

    Database database() {
        return database;
    }

    Family metadata() {
        return metadata;
    }

    RowLimits limits() {
        return limits;
    }

    /** The rows of a store. */
    Family rows(final String store) {
        return database.family("store-" + store, familyOptions);
    }

    /** Where a store puts rows that are not committed yet and do not fit in memory. */
    Family scratch(final String store) {
        return database.family(scratchName(store), familyOptions);
    }

    /** That of an earlier process; null if there is none. */
    Family existingScratch(final String store) {
        return database.existingFamily(scratchName(store));
    }

    long memoryBytes() {
        return resources.usedBytes();
    }

    private static String scratchName(final String store) {
        return "scratch-" + store;
    }

    /** Moves a database away; one that was moved before is removed. */
    private static void setAside(final Path directory) {
        final Path target = directory.resolveSibling(DAMAGED_DIRECTORY);
        try {
            Utils.delete(target.toFile());
            Files.move(directory, target);
            LOG.error("The damaged state was moved to {}", target);
        } catch (final IOException e) {
            throw new LithifyException(LithifyException.IO, directory + " cannot be moved to " + target + ": " + e.getMessage());
        }
    }
}

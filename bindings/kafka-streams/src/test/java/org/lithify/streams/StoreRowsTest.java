package org.lithify.streams;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.query.Position;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** Rows of a store beside a model, with crashes: a crash is a copy of the directory while it is open. */
class StoreRowsTest {
    private static final TopicPartition PARTITION = new TopicPartition("changelog", 0);
    private static final LithifyConfig CONFIG =
        new LithifyConfig(Map.of(LithifyConfig.MEMORY_BYTES_CONFIG, 64L << 20));

    @TempDir
    private Path temporary;
    private Path directory;
    private int copies;

    @BeforeEach
    void live() {
        directory = temporary.resolve("live");
    }

    @ParameterizedTest
    @CsvSource({"true, 1000000, 1", "true, 600, 2", "true, 0, 3", "false, 1000000, 4", "false, 300, 5"})
    void rowsAreThoseOfTheModel(final boolean transactional, final long bound, final long seed) throws Exception {
        final Random random = new Random(seed);
        final NavigableMap<byte[], byte[]> model = new TreeMap<>(Arrays::compareUnsigned);
        NavigableMap<byte[], byte[]> committed = new TreeMap<>(model);
        long offset = -1;
        TaskDatabase database = TaskDatabase.acquire(directory, "store", CONFIG, false);
        StoreRows rows = new StoreRows(database, "store", "test", bound, transactional);
        for (int step = 0; step < 3000; step++) {
            switch (random.nextInt(20)) {
                case 0 -> {
                    offset = step;
                    rows.commit(Map.of(PARTITION, offset), Position.emptyPosition());
                    committed = new TreeMap<>(model);
                }
                case 1, 2 -> assertRange(rows, model, random);
                case 3 -> assertHeldIterator(rows, model, random);
                case 4 -> {
                    if (random.nextInt(15) == 0) {
                        if (transactional) {
                            assertCrash(offset, committed, bound);
                        }
                        rows.close();
                        database.release("store");
                        database = TaskDatabase.acquire(directory, "store", CONFIG, false);
                        rows = new StoreRows(database, "store", "test", bound, transactional);
                        if (transactional) {
                            model.clear();
                            model.putAll(committed);
                        }
                    }
                }
                default -> write(rows, model, random);
            }
        }
        assertSame(model, rows.iterator(List.of(ByteRange.ALL), true));
        rows.close();
        database.release("store");
    }

    /** What a crash leaves is the state of the last commit, with its offset. */
    private void assertCrash(final long offset, final NavigableMap<byte[], byte[]> committed, final long bound)
        throws Exception {
        final Path copy = TestContext.copy(directory.resolve(TaskDatabase.DIRECTORY),
            temporary.resolve("copy-" + copies++).resolve(TaskDatabase.DIRECTORY));
        final TaskDatabase crashed = TaskDatabase.acquire(copy.getParent(), "store", CONFIG, false);
        final StoreRows rows = new StoreRows(crashed, "store", "test", bound, true);
        assertSame(committed, rows.iterator(List.of(ByteRange.ALL), true));
        assertEquals(offset < 0 ? null : offset, rows.metadata().offset(PARTITION));
        rows.close();
        crashed.release("store");
        org.apache.kafka.common.utils.Utils.delete(copy.getParent().toFile());
    }

    private static void write(final StoreRows rows, final Map<byte[], byte[]> model, final Random random) {
        final byte[] key = key(random);
        if (random.nextInt(4) == 0) {
            rows.put(key, null);
            model.remove(key);
        } else {
            final byte[] value = new byte[random.nextInt(40)];
            random.nextBytes(value);
            rows.put(key, value);
            model.put(key, value);
        }
        final byte[] read = key(random);
        assertArrayEquals(model.get(read), rows.get(read));
    }

    private static void assertRange(final StoreRows rows, final NavigableMap<byte[], byte[]> model,
                                    final Random random) {
        final byte[] first = key(random);
        final byte[] last = key(random);
        final boolean forward = random.nextBoolean();
        final NavigableMap<byte[], byte[]> part = Arrays.compareUnsigned(first, last) > 0
            ? new TreeMap<>() : model.subMap(first, true, last, true);
        assertSame(forward ? part : part.descendingMap(),
            rows.iterator(List.of(ByteRange.closed(first, last)), forward));
    }

    /** An iterator shows the state of its creation, whatever is written and committed while it is read. */
    private static void assertHeldIterator(final StoreRows rows, final NavigableMap<byte[], byte[]> model,
                                           final Random random) {
        final List<byte[]> bounds = new ArrayList<>(List.of(key(random), key(random), key(random), key(random)));
        bounds.sort(Arrays::compareUnsigned);
        final NavigableMap<byte[], byte[]> expected = new TreeMap<>(Arrays::compareUnsigned);
        expected.putAll(model.subMap(bounds.get(0), true, bounds.get(1), false));
        expected.putAll(model.subMap(bounds.get(2), true, bounds.get(3), false));
        final RowIterator held = rows.iterator(List.of(new ByteRange(bounds.get(0), bounds.get(1)),
            new ByteRange(bounds.get(2), bounds.get(3))), true);
        for (int i = 0; i < 5; i++) {
            write(rows, model, random);
        }
        assertSame(expected, held);
    }

    private static void assertSame(final Map<byte[], byte[]> expected, final RowIterator found) {
        try (found) {
            expected.forEach((key, value) -> {
                assertTrue(found.next(), "a row is missing");
                assertArrayEquals(key, found.key());
                assertArrayEquals(value, found.value());
            });
            assertTrue(!found.next(), "a row too many");
        }
    }

    private static byte[] key(final Random random) {
        final byte[] key = new byte[random.nextInt(4)];
        for (int i = 0; i < key.length; i++) {
            key[i] = (byte) (random.nextInt(5) - 2);
        }
        return key;
    }

    /** The caller's arrays are the caller's: changing what was put or read changes no row. */
    @ParameterizedTest
    @CsvSource({"true, 1000000", "true, 0", "false, 1000000", "false, 0"})
    void rowsAreCopies(final boolean transactional, final long bound) {
        final TaskDatabase database = TaskDatabase.acquire(directory, "store", CONFIG, false);
        final StoreRows rows = new StoreRows(database, "store", "test", bound, transactional);
        final byte[] key = number(0);
        final byte[] value = number(0);
        for (int i = 1; i <= 3; i++) {
            key[0] = (byte) i;
            value[0] = (byte) (10 * i);
            rows.put(key, value);
        }
        final NavigableMap<byte[], byte[]> expected = new TreeMap<>(Arrays::compareUnsigned);
        expected.putAll(Map.of(number(1), number(10), number(2), number(20), number(3), number(30)));
        for (int i = 0; i < 2; i++) {
            assertSame(expected, rows.iterator(List.of(ByteRange.ALL), true));
            rows.get(number(2))[0] = 99;
            try (RowIterator all = rows.iterator(List.of(ByteRange.ALL), true)) {
                while (all.next()) {
                    all.key()[0] = 99;
                    all.value()[0] = 99;
                }
            }
            assertArrayEquals(number(20), rows.get(number(2)));
        }
        rows.commit(Map.of(PARTITION, 1L), Position.emptyPosition());
        assertSame(expected, rows.iterator(List.of(ByteRange.ALL), true));
        rows.close();
        database.release("store");
    }

    @Test
    void aCommittedSpillIsFoldedByTheNextOpening() throws Exception {
        final TaskDatabase database = TaskDatabase.acquire(directory, "store", CONFIG, false);
        final StoreRows rows = new StoreRows(database, "store", "test", 1 << 20, true);
        for (int i = 0; i < 100; i++) {
            rows.put(number(i), number(0));
        }
        rows.commit(Map.of(PARTITION, 1L), Position.emptyPosition());

        final Overlay overlay = new Overlay(null);
        for (int i = 0; i < 100; i += 2) {
            overlay.put(number(i), i % 4 == 0 ? null : number(1));
        }
        final Spill spill = new Spill(database.scratch("store"), 7);
        spill.add(overlay);
        assertRecovered(TestContext.copy(directory, temporary.resolve("before")), 100, 1L);

        final byte[] description = spill.description(List.of(new ByteRange(number(50), number(60))));
        try (WriteBatch batch = new WriteBatch(database.database())) {
            rows.metadata().writeFold(batch, description);
            rows.metadata().writeOffsets(batch, Map.of(PARTITION, 2L));
            batch.commit();
        }
        // 25 of 100 are removed; of 50 to 59 the five odd ones go with the range, and 50, 54, 58 come back.
        assertRecovered(TestContext.copy(directory, temporary.resolve("after")), 70, 2L);

        spill.fold(description, database.rows("store"), rows.metadata());
        assertRecovered(TestContext.copy(directory, temporary.resolve("folded")), 70, 2L);
        rows.close();
        database.release("store");
    }

    private static void assertRecovered(final Path copy, final int count, final long offset) {
        final TaskDatabase database = TaskDatabase.acquire(copy, "store", CONFIG, false);
        final StoreRows rows = new StoreRows(database, "store", "test", 1 << 20, true);
        int found = 0;
        try (RowIterator all = rows.iterator(List.of(ByteRange.ALL), true)) {
            while (all.next()) {
                found++;
            }
        }
        assertEquals(count, found);
        assertEquals(offset, rows.metadata().offset(PARTITION));
        assertEquals(null, rows.metadata().fold());
        try (Cursor left = new Cursor(database.scratch("store"), null, null, null, true)) {
            assertTrue(!left.next(), "the scratch family is not empty");
        }
        rows.close();
        database.release("store");
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "buffered", "sync"})
    void rowsAndOffsetsBelongTogetherWhateverTheDurability(final String durability) throws Exception {
        final LithifyConfig config = new LithifyConfig(Map.of(LithifyConfig.DURABILITY_CONFIG, durability,
            LithifyConfig.MEMORY_BYTES_CONFIG, 64L << 20, LithifyConfig.COMPRESSION_CONFIG, "zstd-1"));
        final TaskDatabase database = TaskDatabase.acquire(directory, "store", config, false);
        final StoreRows rows = new StoreRows(database, "store", "test", 1 << 20, true);
        for (int commit = 0; commit < 40; commit++) {
            for (int i = 0; i < 20; i++) {
                rows.put(number(i), number(commit));
            }
            rows.commit(Map.of(PARTITION, (long) commit), Position.emptyPosition());
            if (commit % 15 == 7) {
                database.database().flush();
            }
            if (commit % 5 == 4) {
                final long found = commitAfterCrash(config, commit);
                assertTrue(durability.equals("none") ? found <= commit : found == commit, "commit " + found);
            }
        }
        rows.close();
        database.release("store");
    }

    /** The number of the commit whose rows and offset a crash leaves; -1 for an empty store. */
    private long commitAfterCrash(final LithifyConfig config, final int commit) throws Exception {
        final Path copy = TestContext.copy(directory, temporary.resolve("crash-" + commit));
        final TaskDatabase database = TaskDatabase.acquire(copy, "store", config, false);
        final StoreRows rows = new StoreRows(database, "store", "test", 1 << 20, true);
        final Long offset = rows.metadata().offset(PARTITION);
        for (int i = 0; i < 20; i++) {
            assertArrayEquals(offset == null ? null : number(offset.intValue()), rows.get(number(i)));
        }
        rows.close();
        database.release("store");
        return offset == null ? -1 : offset;
    }

    @Test
    void offsetsAreKeptAndForgottenAsStreamsSays() {
        final TopicPartition other = new TopicPartition("changelog", 1);
        TaskDatabase database = TaskDatabase.acquire(directory, "store", CONFIG, false);
        StoreRows rows = new StoreRows(database, "store", "test", 1000, true);
        assertEquals(null, rows.metadata().offset(PARTITION));
        rows.commit(Map.of(PARTITION, 5L, other, -4L), Position.fromMap(Map.of("input", Map.of(0, 9L))));
        rows.close();
        database.release("store");

        database = TaskDatabase.acquire(directory, "store", CONFIG, false);
        rows = new StoreRows(database, "store", "test", 1000, true);
        assertEquals(5L, rows.metadata().offset(PARTITION));
        assertEquals(-4L, rows.metadata().offset(other));
        assertEquals(Position.fromMap(Map.of("input", Map.of(0, 9L))), rows.metadata().position());
        rows.commit(Collections.singletonMap(PARTITION, null), Position.emptyPosition());
        assertEquals(null, rows.metadata().offset(PARTITION));
        assertEquals(-4L, rows.metadata().offset(other));
        rows.commit(null, Position.emptyPosition());
        assertEquals(-4L, rows.metadata().offset(other));
        rows.commit(Map.of(), Position.emptyPosition());
        assertEquals(null, rows.metadata().offset(other));
        rows.close();
        database.release("store");
    }

    @Test
    void rowsOfAnotherFormatAreDropped() {
        TaskDatabase database = TaskDatabase.acquire(directory, "store", CONFIG, false);
        StoreRows rows = new StoreRows(database, "store", "one", 1000, true);
        rows.put(number(1), number(1));
        rows.commit(Map.of(PARTITION, 5L), Position.emptyPosition());
        rows.close();
        database.release("store");

        database = TaskDatabase.acquire(directory, "store", CONFIG, false);
        rows = new StoreRows(database, "store", "two", 1000, true);
        assertEquals(null, rows.get(number(1)));
        assertEquals(null, rows.metadata().offset(PARTITION));
        rows.close();
        database.release("store");
    }

    /** The end of a range behind such a key would be longer than the engine takes. */
    @Test
    void theLongestKeysOfAnotherFormatAreDropped() {
        final TaskDatabase database = TaskDatabase.acquire(directory, "store", CONFIG, false);
        final Family family = database.rows("store");
        final byte[] longest = new byte[65_535];
        Arrays.fill(longest, (byte) 0xFF);
        try (WriteBatch batch = new WriteBatch(database.database())) {
            batch.write(family, new byte[0], number(1));
            batch.write(family, longest, number(1));
            new StoreMetadata(database.metadata(), "store").writeFormat(batch, "one");
            batch.commit();
        }
        final StoreRows rows = new StoreRows(database, "store", "two", 1000, true);
        assertSame(Map.of(), rows.iterator(List.of(ByteRange.ALL), true));
        rows.close();
        database.release("store");
    }

    @Test
    void theLongestKeysOfASpillAreDroppedAfterACrash() throws Exception {
        final TaskDatabase database = TaskDatabase.acquire(directory, "store", CONFIG, false);
        final StoreRows rows = new StoreRows(database, "store", "test", 0, true);
        rows.commit(Map.of(PARTITION, 1L), Position.emptyPosition());
        rows.put(new byte[65_535 - Long.BYTES], number(1));
        assertEquals(1, rows.spills());
        assertRecovered(TestContext.copy(directory, temporary.resolve("crash")), 0, 1L);
        rows.close();
        database.release("store");
    }

    private static byte[] number(final int number) {
        return new byte[] {(byte) number};
    }
}

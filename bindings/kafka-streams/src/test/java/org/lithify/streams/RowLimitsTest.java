package org.lithify.streams;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.ProcessorStateException;
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
import java.util.List;
import java.util.Map;

import static org.apache.kafka.streams.StreamsConfig.AT_LEAST_ONCE;
import static org.apache.kafka.streams.StreamsConfig.EXACTLY_ONCE_V2;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** Rows and commits as large as they may be, and larger, with the least memory that may be set. */
class RowLimitsTest {
    private static final TopicPartition PARTITION = new TopicPartition("changelog", 0);
    private static final long MEMORY_BYTES = 16L << 20;
    private static final LithifyConfig CONFIG =
        new LithifyConfig(Map.of(LithifyConfig.MEMORY_BYTES_CONFIG, MEMORY_BYTES));
    private static final long UNCOMMITTED_BYTES = 64L << 20;
    /** What README.md says. */
    private static final int KEY_BYTES_MAX = 65_527;
    private static final int VALUE_BYTES_MAX = (8 << 20) - (128 << 10);

    @TempDir
    private Path temporary;
    private Path directory;

    @BeforeEach
    void live() {
        directory = temporary.resolve("live");
    }

    private static StoreRows open(final TaskDatabase database, final long uncommittedBytes,
                                  final boolean transactional) {
        return new StoreRows(database, "store", "test", uncommittedBytes, transactional);
    }

    @ParameterizedTest
    @CsvSource({"true, 67108864", "true, 10000000", "false, 67108864", "false, 10000000"})
    void aCommitMayBeLargerThanABatch(final boolean transactional, final long uncommittedBytes) throws Exception {
        final TaskDatabase database = TaskDatabase.acquire(directory, "store", CONFIG, false);
        final StoreRows rows = open(database, uncommittedBytes, transactional);
        writeAll(rows, (byte) 1);
        rows.commit(Map.of(PARTITION, 1L), Position.emptyPosition());
        writeAll(rows, (byte) 2);
        rows.put(key(0), null);
        rows.deleteRange(new ByteRange(key(100), key(110)));
        if (transactional) {
            assertRows(TestContext.copy(directory, temporary.resolve("before")), 2000, (byte) 1, 1L);
        }
        rows.commit(Map.of(PARTITION, 2L), Position.emptyPosition());
        assertRows(TestContext.copy(directory, temporary.resolve("after")), 1989, (byte) 2, 2L);
        assertEquals(0, rows.uncommittedBytes());
        rows.close();
        database.release("store");
    }

    /** 20 MB: more than the memory, and more than twice what a batch may be. */
    private static void writeAll(final StoreRows rows, final byte content) {
        final byte[] value = new byte[10_000];
        Arrays.fill(value, content);
        for (int i = 0; i < 2000; i++) {
            rows.put(key(i), value);
        }
    }

    private static void assertRows(final Path copy, final int count, final byte content, final long offset) {
        final TaskDatabase database = TaskDatabase.acquire(copy, "store", CONFIG, false);
        final StoreRows rows = open(database, UNCOMMITTED_BYTES, true);
        int found = 0;
        try (RowIterator all = rows.iterator(List.of(ByteRange.ALL), true)) {
            while (all.next()) {
                assertEquals(10_000, all.value().length);
                assertEquals(content, all.value()[9_999]);
                found++;
            }
        }
        assertEquals(count, found);
        assertEquals(offset, rows.metadata().offset(PARTITION));
        rows.close();
        database.release("store");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aRestoreMayBeLargerThanABatch(final boolean clean) {
        final TaskDatabase database = TaskDatabase.acquire(directory, "store", CONFIG, false);
        final StoreRows rows = open(database, UNCOMMITTED_BYTES, true);
        if (!clean) {
            rows.put(new byte[0], new byte[0]);
        }
        final List<byte[]> records = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            records.addAll(List.of(key(i), new byte[10_000]));
        }
        records.addAll(List.of(new byte[KEY_BYTES_MAX], new byte[VALUE_BYTES_MAX]));
        rows.restore(records, List.of(new ByteRange(key(100), key(110))));
        rows.commit(Map.of(PARTITION, 1L), Position.emptyPosition());
        assertArrayEquals(new byte[10_000], rows.get(key(1999)));
        assertNull(rows.get(key(105)));
        assertEquals(VALUE_BYTES_MAX, rows.get(new byte[KEY_BYTES_MAX]).length);
        rows.close();
        database.release("store");
    }

    @ParameterizedTest
    @CsvSource({"true, 67108864", "true, 0", "false, 67108864", "false, 0"})
    void theLargestRowIsTakenAndALargerOneRefused(final boolean transactional, final long uncommittedBytes) {
        TaskDatabase database = TaskDatabase.acquire(directory, "store", CONFIG, false);
        final StoreRows rows = open(database, uncommittedBytes, transactional);
        final byte[] longest = new byte[KEY_BYTES_MAX];
        Arrays.fill(longest, (byte) 0xFF);
        final byte[] largest = new byte[VALUE_BYTES_MAX];
        rows.put(key(1), key(1));
        rows.put(longest, largest);
        final long before = rows.uncommittedBytes();
        for (final byte[] key : List.of(new byte[KEY_BYTES_MAX + 1], new byte[70_000])) {
            for (final byte[] value : new byte[][] {key(1), null}) {
                final Exception refused = assertThrows(LithifyException.class, () -> rows.put(key, value));
                assertTrue(refused.getMessage().contains("65527"), refused.getMessage());
            }
        }
        final Exception refused =
            assertThrows(LithifyException.class, () -> rows.put(key(2), new byte[VALUE_BYTES_MAX + 1]));
        assertTrue(refused.getMessage().contains(LithifyConfig.MEMORY_BYTES_CONFIG), refused.getMessage());
        assertThrows(LithifyException.class,
            () -> rows.restore(List.of(key(3), key(3), new byte[KEY_BYTES_MAX + 1], key(3)), List.of()));
        assertNull(rows.get(key(3)));
        assertEquals(before, rows.uncommittedBytes());

        rows.put(key(4), key(4));
        assertLast(rows, longest);
        rows.commit(Map.of(PARTITION, 1L), Position.emptyPosition());
        rows.close();
        database.release("store");
        database = TaskDatabase.acquire(directory, "store", CONFIG, false);
        final StoreRows reopened = open(database, uncommittedBytes, transactional);
        assertArrayEquals(key(1), reopened.get(key(1)));
        assertNull(reopened.get(key(2)));
        assertArrayEquals(key(4), reopened.get(key(4)));
        assertArrayEquals(largest, reopened.get(longest));
        assertLast(reopened, longest);
        reopened.close();
        database.release("store");
    }

    private static void assertLast(final StoreRows rows, final byte[] key) {
        try (RowIterator last = rows.iterator(List.of(ByteRange.closed(key, key)), false)) {
            assertTrue(last.next());
            assertArrayEquals(key, last.key());
            assertTrue(!last.next());
        }
    }

    @Test
    void withMuchMemoryTheEngineItselfIsTheLimit() {
        final RowLimits limits = new RowLimits(1L << 40);
        final byte[] key = new byte[KEY_BYTES_MAX];
        limits.check(key, new byte[(64 << 20) - 1]);
        final Exception refused =
            assertThrows(LithifyException.class, () -> limits.check(key, new byte[64 << 20]));
        assertTrue(!refused.getMessage().contains(LithifyConfig.MEMORY_BYTES_CONFIG), refused.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {EXACTLY_ONCE_V2, AT_LEAST_ONCE})
    void aStoreRefusesALargeRowAndGoesOn(final String guarantee) {
        final LithifyKeyValueStore store = new LithifyKeyValueStore("store");
        store.init(TestContext.of(directory, guarantee), store);
        final Bytes one = TestContext.bytes("one");
        final Bytes tooLong = Bytes.wrap(new byte[70_000]);
        final Exception refused = assertThrows(ProcessorStateException.class, () -> store.put(tooLong, new byte[1]));
        assertTrue(refused.getMessage().contains("a key is too long"), refused.getMessage());
        assertThrows(ProcessorStateException.class, () -> store.put(one, new byte[70 << 20]));
        assertThrows(ProcessorStateException.class, () -> store.putAll(List.of(
            KeyValue.pair(one, new byte[1]), KeyValue.pair(tooLong, new byte[1]))));
        assertNull(store.get(one));
        assertNull(store.get(tooLong));
        store.range(tooLong, tooLong).close();
        store.put(one, new byte[1]);
        store.commit(Map.of(PARTITION, 1L));
        assertArrayEquals(new byte[1], store.get(one));
        store.close();
    }

    private static byte[] key(final int number) {
        return new byte[] {(byte) (number >>> 8), (byte) number};
    }
}

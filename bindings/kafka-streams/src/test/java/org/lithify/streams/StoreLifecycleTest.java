package org.lithify.streams;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.LockException;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

import static org.apache.kafka.streams.StreamsConfig.AT_LEAST_ONCE;
import static org.apache.kafka.streams.StreamsConfig.EXACTLY_ONCE_V2;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** Opening, closing, and what goes wrong with either. */
class StoreLifecycleTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);
    private static final Bytes KEY = TestContext.bytes("key");
    private static final byte[] VALUE = "value".getBytes();

    @TempDir
    private Path directory;

    private LithifyKeyValueStore open(final String name, final String guarantee) {
        final LithifyKeyValueStore store = new LithifyKeyValueStore(name);
        store.init(TestContext.of(directory, guarantee), store);
        return store;
    }

    @Test
    void underExactlyOnceOnlyCommittedRowsSurvive() {
        LithifyKeyValueStore store = open("store", EXACTLY_ONCE_V2);
        assertNull(store.committedOffset(CHANGELOG));
        store.put(KEY, VALUE);
        store.commit(Map.of(CHANGELOG, 3L));
        store.put(KEY, "later".getBytes());
        store.put(TestContext.bytes("other"), VALUE);
        store.close();
        store.close();

        store = open("store", EXACTLY_ONCE_V2);
        assertArrayEquals(VALUE, store.get(KEY));
        assertNull(store.get(TestContext.bytes("other")));
        assertEquals(3L, store.committedOffset(CHANGELOG));
        store.close();
    }

    @Test
    void underAtLeastOnceACloseKeepsRows() {
        LithifyKeyValueStore store = open("store", AT_LEAST_ONCE);
        store.put(KEY, VALUE);
        store.close();
        store = open("store", AT_LEAST_ONCE);
        assertArrayEquals(VALUE, store.get(KEY));
        store.close();
    }

    @Test
    void storesOfATaskShareADatabase() throws IOException {
        final LithifyKeyValueStore one = open("one", AT_LEAST_ONCE);
        final LithifyKeyValueStore two = open("two", AT_LEAST_ONCE);
        one.put(KEY, VALUE);
        assertNull(two.get(KEY));
        one.close();
        two.put(KEY, VALUE);
        assertArrayEquals(VALUE, two.get(KEY));
        two.close();
        try (Stream<Path> entries = Files.list(directory)) {
            assertEquals(List.of(directory.resolve(TaskDatabase.DIRECTORY)), entries.toList());
        }
    }

    @Test
    void aClosedStoreRefuses() {
        final LithifyKeyValueStore store = open("store", AT_LEAST_ONCE);
        store.put(KEY, VALUE);
        final KeyValueIterator<Bytes, byte[]> iterator = store.all();
        assertTrue(iterator.hasNext());
        store.close();
        assertThrows(InvalidStateStoreException.class, iterator::hasNext);
        iterator.close();
        assertThrows(InvalidStateStoreException.class, () -> store.get(KEY));
        assertThrows(InvalidStateStoreException.class, () -> store.put(KEY, VALUE));
        assertThrows(InvalidStateStoreException.class, store::all);
        assertThrows(InvalidStateStoreException.class, () -> store.range(KEY, null));
        assertThrows(InvalidStateStoreException.class, store::approximateNumEntries);
        assertThrows(InvalidStateStoreException.class, () -> store.committedOffset(CHANGELOG));
        store.commit(Map.of(CHANGELOG, 1L));
    }

    @Test
    void aDirectoryInUseIsTriedAgain() throws IOException {
        final Path path = Files.createDirectories(directory.resolve(TaskDatabase.DIRECTORY));
        final SharedResources resources = SharedResources.acquire(64L << 20, 1);
        final Database other = Database.open(path, Map.of(), resources);
        assertThrows(LockException.class, () -> open("store", EXACTLY_ONCE_V2));
        other.close();
        resources.release();
        open("store", EXACTLY_ONCE_V2).close();

        final LithifyKeyValueStore first = open("store", EXACTLY_ONCE_V2);
        assertThrows(LockException.class, () -> open("store", EXACTLY_ONCE_V2));
        first.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"CURRENT", "MANIFEST"})
    void aDamagedDirectoryLeadsToRecovery(final String file) throws IOException {
        final LithifyKeyValueStore store = open("store", EXACTLY_ONCE_V2);
        store.put(KEY, VALUE);
        store.commit(Map.of(CHANGELOG, 3L));
        store.close();
        damage(file);

        // Streams removes the directory of a corrupt task and restores it.
        assertThrows(TaskCorruptedException.class, () -> open("store", EXACTLY_ONCE_V2));

        // At least once it does not: the store itself begins anew.
        final LithifyKeyValueStore anew = open("store", AT_LEAST_ONCE);
        assertNull(anew.get(KEY));
        assertNull(anew.committedOffset(CHANGELOG));
        assertTrue(Files.isDirectory(directory.resolve(TaskDatabase.DAMAGED_DIRECTORY)));
        anew.close();
    }

    @Test
    void damageThatAReadFindsLeadsToRecovery() throws IOException {
        LithifyKeyValueStore store = open("store", AT_LEAST_ONCE);
        for (int i = 0; i < 1000; i++) {
            store.put(TestContext.bytes("key" + i), ("value" + i).getBytes());
        }
        store.commit(Map.of(CHANGELOG, 3L));
        store.database().database().flush();
        store.close();
        // The largest table is that of the rows; the metadata stay readable.
        try (Stream<Path> files = Files.list(directory.resolve(TaskDatabase.DIRECTORY))) {
            final Path table = files.filter(file -> file.toString().endsWith(".sst"))
                .max(java.util.Comparator.comparing(file -> file.toFile().length())).orElseThrow();
            final byte[] bytes = Files.readAllBytes(table);
            java.util.Arrays.fill(bytes, bytes.length / 4, bytes.length / 2, (byte) 0x5A);
            Files.write(table, bytes);
        }

        final LithifyKeyValueStore damaged = open("store", AT_LEAST_ONCE);
        final TaskCorruptedException found = assertThrows(TaskCorruptedException.class, () -> {
            try (KeyValueIterator<Bytes, byte[]> all = damaged.all()) {
                all.forEachRemaining(row -> { });
            }
        });
        assertEquals(java.util.Set.of(damaged.context().taskId()), found.corruptedTasks());
        damaged.close();

        store = open("store", AT_LEAST_ONCE);
        assertNull(store.get(TestContext.bytes("key1")));
        assertNull(store.committedOffset(CHANGELOG));
        store.close();
    }

    private void damage(final String file) throws IOException {
        try (Stream<Path> files = Files.list(directory.resolve(TaskDatabase.DIRECTORY))) {
            final List<Path> found = files.filter(path -> path.getFileName().toString().startsWith(file)).toList();
            assertFalse(found.isEmpty(), "no file " + file);
            for (final Path path : found) {
                final byte[] bytes = Files.readAllBytes(path);
                java.util.Arrays.fill(bytes, (byte) 0x5A);
                Files.write(path, bytes);
            }
        }
    }

    @Test
    void queriesAnswerAtAPosition() {
        final InternalMockProcessorContext<?, ?> context = TestContext.of(directory, AT_LEAST_ONCE);
        final LithifyKeyValueStore store = new LithifyKeyValueStore("store");
        store.init(context, store);
        context.setRecordContext(new org.apache.kafka.streams.processor.internals.ProcessorRecordContext(
            0, 7, 0, "input", new org.apache.kafka.common.header.internals.RecordHeaders()));
        store.put(KEY, VALUE);
        final Position seen = Position.emptyPosition().withComponent("input", 0, 7);
        final QueryResult<byte[]> found = store.query(KeyQuery.withKey(KEY), PositionBound.at(seen),
            new QueryConfig(false));
        assertArrayEquals(VALUE, found.getResult());
        assertEquals(seen, found.getPosition());
        final QueryResult<KeyValueIterator<Bytes, byte[]>> range = store.query(RangeQuery.withNoBounds(),
            PositionBound.unbounded(), new QueryConfig(false));
        try (KeyValueIterator<Bytes, byte[]> rows = range.getResult()) {
            assertEquals(KEY, rows.next().key);
            assertFalse(rows.hasNext());
        }
        assertTrue(store.query(KeyQuery.withKey(KEY),
            PositionBound.at(Position.emptyPosition().withComponent("input", 0, 8)), new QueryConfig(false))
            .isFailure());
        store.close();
    }

    @Test
    void figuresAreInTheRegistryOfStreams() {
        final InternalMockProcessorContext<?, ?> context = TestContext.of(directory, EXACTLY_ONCE_V2,
            LithifyConfig.UNCOMMITTED_MAX_BYTES_CONFIG, 100L);
        final LithifyKeyValueStore store = new LithifyKeyValueStore("store");
        store.init(context, store);
        store.put(KEY, new byte[200]);
        store.put(KEY, VALUE);
        assertEquals(1L, figure(context, "spills-total"));
        assertTrue(figure(context, "uncommitted-bytes") > 0);
        assertTrue(figure(context, "memory-bytes") > 0);
        store.commit(Map.of(CHANGELOG, 1L));
        assertEquals(0L, figure(context, "uncommitted-bytes"));
        assertEquals(1L, figure(context, "commits-total"));
        store.close();
        assertEquals(0L, figure(context, "disk-bytes"));
    }

    private static long figure(final InternalMockProcessorContext<?, ?> context, final String name) {
        return context.metrics().metrics().entrySet().stream()
            .filter(entry -> entry.getKey().name().equals(name) && entry.getKey().group().equals("stream-state-metrics")
                && "store".equals(entry.getKey().tags().get("lithify-state-id")))
            .map(entry -> (Long) entry.getValue().metricValue()).findFirst().orElseThrow();
    }

    @Test
    void settingsAreChecked() {
        assertThrows(org.apache.kafka.common.config.ConfigException.class,
            () -> new LithifyConfig(Map.of(LithifyConfig.DURABILITY_CONFIG, "perhaps")));
        assertThrows(org.apache.kafka.common.config.ConfigException.class,
            () -> new LithifyConfig(Map.of(LithifyConfig.MEMORY_BYTES_CONFIG, 5)));
        final LithifyKeyValueStore store = new LithifyKeyValueStore("store");
        final Exception refused = assertThrows(StreamsException.class, () -> store.init(
            TestContext.of(directory, AT_LEAST_ONCE, LithifyConfig.COMPRESSION_CONFIG, "zip"), store));
        assertTrue(refused.getMessage().contains("zip"), refused.getMessage());
    }

    @Test
    void optionsOfTheEngineAreTaken() {
        assertThrows(org.apache.kafka.common.config.ConfigException.class,
            () -> new LithifyConfig(Map.of(LithifyConfig.OPTIONS_CONFIG, "memtable_bytes")));
        assertThrows(org.apache.kafka.common.config.ConfigException.class,
            () -> new LithifyConfig(Map.of(LithifyConfig.OPTIONS_CONFIG, "time_to_live_s=1")));
        final LithifyConfig config = new LithifyConfig(Map.of(LithifyConfig.OPTIONS_CONFIG,
            " wal_bytes_max=32MiB block_size_bytes=4KiB  compression=zstd-1 "));
        assertEquals("32MiB", config.databaseOptions().get("wal_bytes_max"));
        assertEquals(Map.of("block_size_bytes", "4KiB", "compression", "zstd-1"), config.familyOptions());

        final LithifyKeyValueStore store = new LithifyKeyValueStore("store");
        final Exception refused = assertThrows(StreamsException.class, () -> store.init(
            TestContext.of(directory, AT_LEAST_ONCE, LithifyConfig.OPTIONS_CONFIG, "blok_size=4KiB"), store));
        assertTrue(refused.getMessage().contains("blok_size"), refused.getMessage());
        final Exception outside = assertThrows(StreamsException.class, () -> store.init(
            TestContext.of(directory, AT_LEAST_ONCE, LithifyConfig.OPTIONS_CONFIG, "memtable_bytes=1"), store));
        assertTrue(outside.getMessage().contains("memtable_bytes"), outside.getMessage());
        store.init(TestContext.of(directory, AT_LEAST_ONCE, LithifyConfig.OPTIONS_CONFIG,
            "wal_bytes_max=32MiB block_size_bytes=4KiB"), store);
        store.close();
    }

    @Test
    void aFullDiskLosesNothingThatWasCommitted() throws IOException, InterruptedException {
        final Path log = directory.resolve("log");
        final List<String> command = new java.util.ArrayList<>(List.of("sh", "-c", "ulimit -f 4096; exec \"$@\"", "sh"));
        command.addAll(Broker.command(Broker.classPath(), "-Xmx256m",
            List.of(FullDiskApplication.class.getName(), directory.toString())));
        assertEquals(0, new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start()
            .waitFor(), () -> "see " + log);
        final List<String> lines = Files.readAllLines(log);
        assertTrue(lines.stream().anyMatch(line -> line.startsWith("REFUSED Error while ")), lines::toString);
        assertTrue(lines.contains("READS true"), lines::toString);
        final long last = lines.stream().filter(line -> line.startsWith("COMMITTED "))
            .mapToLong(line -> Long.parseLong(line.substring("COMMITTED ".length()))).max().orElseThrow();

        final LithifyKeyValueStore store = open("store", EXACTLY_ONCE_V2);
        final long offset = store.committedOffset(FullDiskApplication.CHANGELOG);
        assertTrue(offset == last || offset == last + 1, offset + " instead of " + last);
        for (long i = 0; i <= offset; i++) {
            assertEquals(1000, store.get(TestContext.bytes("key" + i)).length);
        }
        assertNull(store.get(TestContext.bytes("key" + (offset + 1))));
        store.close();
    }

    @Test
    void aWrongLibraryIsNamed() throws IOException, InterruptedException {
        final Path text = Files.writeString(directory.resolve("liblithify_c.so"), "no library");
        final UnsatisfiedLinkError noLibrary =
            assertThrows(UnsatisfiedLinkError.class, () -> NativeLibrary.load(text));
        assertTrue(noLibrary.getMessage().contains(text.toString()), noLibrary.getMessage());

        final Path source = Files.writeString(directory.resolve("other.c"),
            "int lithify_interface(void) { return 99; }");
        final Path other = directory.resolve("libother.so");
        try {
            assertEquals(0, new ProcessBuilder("cc", "-shared", "-fPIC", "-o", other.toString(), source.toString())
                .inheritIO().start().waitFor());
        } catch (final IOException e) {
            Assumptions.abort("there is no C compiler: " + e.getMessage());
        }
        final UnsatisfiedLinkError wrong = assertThrows(UnsatisfiedLinkError.class, () -> NativeLibrary.load(other));
        assertTrue(wrong.getMessage().contains("interface 99"), wrong.getMessage());
    }

    @Test
    void aCommitOfTheThreadCommitsTheStore() {
        final InternalMockProcessorContext<?, ?> context = TestContext.of(directory, EXACTLY_ONCE_V2);
        final org.apache.kafka.common.metrics.Sensor commits = context.metrics().addSensor("commits",
            org.apache.kafka.common.metrics.Sensor.RecordingLevel.INFO);
        commits.add(new org.apache.kafka.common.MetricName("commit-total", "stream-thread-metrics", "",
            Map.of("thread-id", Thread.currentThread().getName())),
            new org.apache.kafka.common.metrics.stats.CumulativeCount());
        LithifyKeyValueStore store = new LithifyKeyValueStore("store");
        store.init(context, store);
        store.put(TestContext.bytes("a"), VALUE);
        commits.record();
        store.put(TestContext.bytes("b"), VALUE);
        store.put(TestContext.bytes("c"), VALUE);
        store.close();

        store = open("store", EXACTLY_ONCE_V2);
        assertArrayEquals(VALUE, store.get(TestContext.bytes("a")));
        assertNull(store.get(TestContext.bytes("b")));
        store.close();
    }
}

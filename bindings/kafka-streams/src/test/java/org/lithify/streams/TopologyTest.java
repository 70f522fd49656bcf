package org.lithify.streams;

import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** The same random input into the same topology, once with Lithify's stores and once with the built-in ones. */
class TopologyTest {
    private static final List<String> OUTPUTS = List.of("count", "hopping", "sliding", "sessions", "suppressed",
        "final-windows", "final-sliding", "final-sessions", "inner", "left", "outer", "stream-table", "table-table",
        "foreign", "grouped");
    private static final int RECORDS = 2000;

    @TempDir
    private Path directory;

    @ParameterizedTest
    @CsvSource({
        "at_least_once, DEFAULT, 0, 1", "exactly_once_v2, DEFAULT, 0, 2",
        "exactly_once_v2, HEADERS, 0, 3", "exactly_once_v2, DEFAULT, 1000000, 4"})
    void outputIsThatOfTheBuiltInStores(final String guarantee, final String format, final long cacheBytes,
                                        final long seed) {
        assertSameOutputs(run(directory, false, guarantee, format, cacheBytes, seed),
            run(directory, true, guarantee, format, cacheBytes, seed));
    }

    /** What was compiled against the present version of Streams runs with an older one. */
    @ParameterizedTest
    @ValueSource(strings = {"4.2.0", "4.1.1"})
    void outputIsThatOfTheBuiltInStoresWithOlderStreams(final String version) throws Exception {
        final Map<String, List<String>> expected = run(directory, false, "at_least_once", "DEFAULT", 0, 11);
        final Path log = directory.resolve("older.log");
        final int end = Broker.run(log, Broker.classPath(version), "-Xmx512m",
            List.of(TopologyTest.class.getName(), directory.toString())).waitFor();
        final List<String> lines = Files.readAllLines(log);
        assertEquals(0, end, () -> String.join("\n", lines));
        assertTrue(lines.contains("Kafka Streams " + version), "another version ran");
        final Map<String, List<String>> found = new TreeMap<>();
        for (final String output : expected.keySet()) {
            found.put(output, new ArrayList<>(lines.stream().filter(line -> line.startsWith(output + "\t"))
                .map(line -> line.substring(output.length() + 1)).toList()));
        }
        assertSameOutputs(expected, found);
    }

    /** Prints the output with Lithify's stores; the argument is a directory. */
    public static void main(final String[] arguments) {
        System.out.println("Kafka Streams " + AppInfoParser.getVersion());
        run(Path.of(arguments[0]), true, "at_least_once", "DEFAULT", 0, 11).forEach((output, records) ->
            records.forEach(record -> System.out.println(output + "\t" + record)));
    }

    private static void assertSameOutputs(final Map<String, List<String>> expected,
                                          final Map<String, List<String>> found) {
        for (final String output : expected.keySet()) {
            assertTrue(!expected.get(output).isEmpty(), output + " is empty: the input is too small");
            // Windows that close together come in the order of their store: by key here, by time there.
            if (output.startsWith("final-")) {
                Collections.sort(expected.get(output));
                Collections.sort(found.get(output));
            }
            assertSame(output, expected.get(output), found.get(output));
        }
    }

    private static void assertSame(final String output, final List<String> expected, final List<String> found) {
        for (int i = 0; i < Math.min(expected.size(), found.size()); i++) {
            assertEquals(expected.get(i), found.get(i), output + ", record " + i);
        }
        assertEquals(expected.size(), found.size(), output + ", records");
    }

    private static Map<String, List<String>> run(final Path directory, final boolean lithify,
                                                 final String guarantee, final String format,
                                                 final long cacheBytes, final long seed) {
        final Properties properties = Topologies.properties("application", "unused:1",
            directory.resolve(lithify ? "lithify" : "built-in").toString(), lithify);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        properties.put("dsl.store.format", format);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, cacheBytes);
        final Map<String, List<String>> outputs = new TreeMap<>();
        try (TopologyTestDriver driver = new TopologyTestDriver(Topologies.everything(properties), properties,
            Instant.ofEpochMilli(0))) {
            feed(driver, seed);
            for (final String output : OUTPUTS) {
                final List<String> records = new ArrayList<>();
                driver.createOutputTopic("out-" + output, new StringDeserializer(), new StringDeserializer())
                    .readRecordsToList().forEach(record ->
                        records.add(record.timestamp() + " " + record.key() + "=" + record.value()));
                outputs.put(output, records);
            }
            outputs.put("store", contents(driver));
        }
        return outputs;
    }

    private static void feed(final TopologyTestDriver driver, final long seed) {
        final Random random = new Random(seed);
        final List<TestInputTopic<String, String>> topics = new ArrayList<>();
        for (final String topic : List.of("a", "b", "t", "u")) {
            topics.add(driver.createInputTopic(topic, new StringSerializer(), new StringSerializer()));
        }
        long time = 1_700_000_000_000L;
        for (int i = 0; i < RECORDS; i++) {
            time += random.nextInt(random.nextInt(200) == 0 ? 90_000 : 600);
            final int topic = random.nextInt(6) % 4;
            final String key = "k" + random.nextInt(12);
            final boolean removal = topic >= 2 && random.nextInt(5) == 0;
            final String value = removal ? null : "k" + random.nextInt(12) + "-" + random.nextInt(1000);
            final long late = random.nextInt(4) == 0 ? random.nextInt(random.nextInt(20) == 0 ? 200_000 : 20_000) : 0;
            topics.get(topic).pipeInput(key, value, time - late);
        }
    }

    private static List<String> contents(final TopologyTestDriver driver) {
        final List<String> rows = new ArrayList<>();
        for (final String store : List.of("count-store", "t-store", "u-store", "grouped-store")) {
            try (KeyValueIterator<String, Object> all = driver.<String, Object>getKeyValueStore(store).all()) {
                all.forEachRemaining(row -> rows.add(store + " " + row.key + "=" + row.value));
            }
        }
        try (KeyValueIterator<?, ?> all = driver.getWindowStore("window-store").all()) {
            all.forEachRemaining(row -> rows.add("window-store " + row.key + "=" + row.value));
        }
        return rows;
    }
}

package org.lithify.streams;

import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/**
 * A real broker, an exactly-once application, and SIGKILL at random: what the application committed is compared
 * record by record with what it must be.
 *
 * <p>{@code -Dlithify.crash.kills=50} is the long form; {@code -Dlithify.crash.seed} repeats a run.
 */
class CrashTest {
    private static final int KILLS = Integer.getInteger("lithify.crash.kills", 5);
    private static final int PARTITIONS = 2;
    private static final int KEYS = 300;
    private static final String RUNNING = "APP STATE RUNNING";

    private final Random random = new Random(Long.getLong("lithify.crash.seed", System.nanoTime()));
    private final Map<String, Long> expectedCounts = new HashMap<>();
    private final Map<String, Long> expectedWindows = new HashMap<>();
    private final Map<String, Long> expectedGroups = new HashMap<>();
    private final AtomicBoolean feeding = new AtomicBoolean(true);
    private String classPath;
    private long sent;

    @TempDir
    private Path directory;

    @Test
    void committedOutputIsExact() throws Exception {
        final List<Long> restored = runAndCompare(KILLS, Broker.classPath());
        assertTrue(restored.stream().skip(1).mapToLong(Long::longValue).max().orElse(0) < sent / 2,
            "a start restored as much as a full replay: " + restored);
    }

    /** Up to 4.2 Streams itself removes the state after a crash: it is restored, and exact as well. */
    @ParameterizedTest
    @ValueSource(strings = {"4.2.0", "4.1.1"})
    void committedOutputIsExactWithOlderStreams(final String version) throws Exception {
        runAndCompare(1, Broker.classPath(version));
    }

    /** Two processes with a standby of each task: the one that is left goes on with the state of the killed one. */
    @Test
    void standbysTakeOver() throws Exception {
        classPath = Broker.classPath();
        try (Broker broker = Broker.start(directory.resolve("broker"))) {
            createTopics(broker);
            final Thread feeder = Thread.ofPlatform().start(() -> feed(broker.bootstrap()));
            final Process[] instances = {startInstance(broker, 0, 0), startInstance(broker, 1, 1)};
            awaitLine(0, instances[0], RUNNING);
            awaitLine(1, instances[1], RUNNING);
            for (int number = 2; number < 2 + Math.max(1, KILLS / 3); number++) {
                Thread.sleep(3000 + random.nextInt(2000));
                final int killed = random.nextInt(2);
                instances[killed].destroyForcibly().waitFor();
                // Longer than the session: the other one takes the tasks over.
                Thread.sleep(8000);
                instances[killed] = startInstance(broker, killed, number);
                awaitLine(number, instances[killed], RUNNING);
            }
            feeding.set(false);
            feeder.join();
            try {
                compare(broker.bootstrap());
            } finally {
                for (final Process instance : instances) {
                    instance.destroyForcibly().waitFor();
                }
            }
        }
    }

    private Process startInstance(final Broker broker, final int instance, final int number) throws IOException {
        return Broker.run(log(number), classPath, "-Xmx256m", List.of(CrashApplication.class.getName(),
            broker.bootstrap(), directory.resolve("state-" + instance).toString(), "lithify",
            "num.standby.replicas=1", "consumer.group.instance.id=instance-" + instance));
    }

    private static void createTopics(final Broker broker) throws Exception {
        broker.create(PARTITIONS, CrashApplication.INPUT, CrashApplication.COUNTS, CrashApplication.WINDOWS,
            CrashApplication.GROUPS);
    }

    /** Kills an application so many times, compares what it committed, and returns what each start restored. */
    private List<Long> runAndCompare(final int kills, final String applicationClassPath) throws Exception {
        classPath = applicationClassPath;
        final List<Long> restored = new ArrayList<>();
        try (Broker broker = Broker.start(directory.resolve("broker"))) {
            createTopics(broker);
            final Thread feeder = Thread.ofPlatform().start(() -> feed(broker.bootstrap()));
            for (int kill = 0; kill < kills; kill++) {
                restored.add(runAndKill(broker, kill));
            }
            feeding.set(false);
            feeder.join();
            final Process last = start(broker, kills);
            try {
                compare(broker.bootstrap());
            } finally {
                last.destroy();
                last.waitFor(30, TimeUnit.SECONDS);
                last.destroyForcibly();
            }
            restored.add(restored(kills));
        }
        System.out.println("crash proof: " + kills + " kills, " + sent + " inputs, each counted once in three "
            + "outputs; records restored by each start: " + restored);
        return restored;
    }

    private long runAndKill(final Broker broker, final int number) throws Exception {
        final Process application = start(broker, number);
        awaitLine(number, application, RUNNING);
        Thread.sleep(500 + random.nextInt(2500));
        application.destroyForcibly().waitFor();
        return restored(number);
    }

    private Process start(final Broker broker, final int number) throws IOException {
        // A small bound for some: their commits come from the scratch family.
        final String bound = number % 2 == 0 ? "33554432" : "2000";
        return Broker.run(log(number), classPath, "-Xmx256m", List.of(CrashApplication.class.getName(),
            broker.bootstrap(), directory.resolve("state").toString(), "lithify",
            LithifyConfig.UNCOMMITTED_MAX_BYTES_CONFIG + "=" + bound));
    }

    private Path log(final int number) {
        return directory.resolve("application-" + number + ".log");
    }

    private void awaitLine(final int number, final Process process, final String line) throws Exception {
        final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
        while (System.nanoTime() < end) {
            if (Files.exists(log(number)) && Files.readAllLines(log(number)).contains(line)) {
                return;
            }
            assertTrue(process.isAlive(), () -> "the application ended:\n" + tail(number));
            Thread.sleep(50);
        }
        throw new AssertionError("no line " + line + " in:\n" + tail(number));
    }

    private String tail(final int number) {
        try {
            return String.join("\n", Broker.tail(log(number), 60));
        } catch (final IOException e) {
            return e.toString();
        }
    }

    /** How many records an application restored. */
    private long restored(final int number) throws IOException {
        return Files.readAllLines(log(number)).stream().filter(line -> line.startsWith("APP RESTORED "))
            .mapToLong(line -> Long.parseLong(line.substring(line.lastIndexOf(' ') + 1))).sum();
    }

    /** Sends records, with time that goes on steadily, and counts what they must lead to. */
    private void feed(final String bootstrap) {
        final long start = System.currentTimeMillis();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(Map.of(
            ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap), new StringSerializer(), new StringSerializer())) {
            while (feeding.get()) {
                for (int i = 0; i < 20; i++) {
                    send(producer, start + sent * 3);
                }
                Thread.sleep(5);
            }
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void send(final KafkaProducer<String, String> producer, final long time) {
        final String key = "k" + random.nextInt(KEYS);
        final String value = "v" + sent;
        producer.send(new ProducerRecord<>(CrashApplication.INPUT, null, time, key, value));
        expectedCounts.merge(key, 1L, Long::sum);
        expectedWindows.merge(key + "@" + time / CrashApplication.WINDOW.toMillis()
            * CrashApplication.WINDOW.toMillis(), 1L, Long::sum);
        expectedGroups.merge(CrashApplication.group(value), 1L, Long::sum);
        sent++;
    }

    private void compare(final String bootstrap) {
        assertOutput(bootstrap, CrashApplication.COUNTS, expectedCounts);
        assertOutput(bootstrap, CrashApplication.WINDOWS, expectedWindows);
        assertOutput(bootstrap, CrashApplication.GROUPS, expectedGroups);
    }

    /** Of each key the committed output must be 1, 2, 3 and so on up to what is expected, and nothing else. */
    private void assertOutput(final String bootstrap, final String topic, final Map<String, Long> expected) {
        final Map<String, Long> found = new HashMap<>();
        long records = 0;
        try (KafkaConsumer<String, Long> consumer = new KafkaConsumer<>(Map.of(
            ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap, ConsumerConfig.GROUP_ID_CONFIG, "check-" + topic,
            ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed",
            ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest"), new StringDeserializer(), new LongDeserializer())) {
            consumer.subscribe(List.of(topic));
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
            boolean complete = false;
            while (System.nanoTime() < end) {
                for (final ConsumerRecord<String, Long> record : consumer.poll(Duration.ofMillis(200))) {
                    final long before = found.getOrDefault(record.key(), 0L);
                    assertEquals(before + 1, record.value(), topic + ": after " + before + " of " + record.key());
                    found.put(record.key(), record.value());
                    records++;
                }
                if (!complete && records >= sent) {
                    // All are there: a moment more for what must not come.
                    complete = true;
                    end = System.nanoTime() + TimeUnit.SECONDS.toNanos(2);
                }
            }
        }
        assertEquals(sent, records, topic + ": committed records");
        assertEquals(expected, found, topic);
    }
}

package org.lithify.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Utils;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Lithify's stores beside the built-in ones in the same topology: a store that keeps the last value of each key.
 *
 * <p>In each round both run, in turns, each on a broker and a state directory of its own. A run reads all input,
 * is killed, and starts again. The script {@code side-by-side} runs it.
 */
public final class SideBySide {
    private static final int PARTITIONS = 2;

    private final long keys;
    private final long records;
    private final int valueBytes;
    private final String guarantee;
    private final Path directory;
    private final List<String> arms;
    private final Map<String, Map<String, List<Double>>> figures = new LinkedHashMap<>();

    private SideBySide(final long stateBytes, final double updates, final int valueBytes, final String guarantee,
                       final Path directory, final List<String> arms) {
        this.keys = Math.max(1, stateBytes / valueBytes);
        this.records = (long) (keys * updates);
        this.valueBytes = valueBytes;
        this.guarantee = guarantee;
        this.directory = directory;
        this.arms = arms;
    }

    /**
     * Arguments: megabytes of state, records per key, bytes of a value, rounds, guarantee, directory, then arms.
     * An arm is {@code lithify} or {@code built-in}, with settings behind it: {@code lithify;lithify.compression=lz4}.
     * The settings of {@link BuiltInSettings} are for the built-in stores.
     */
    public static void main(final String[] arguments) throws Exception {
        final SideBySide program = new SideBySide(Long.parseLong(arguments[0]) << 20,
            Double.parseDouble(arguments[1]), Integer.parseInt(arguments[2]), arguments[4], Path.of(arguments[5]),
            List.of(arguments).subList(6, arguments.length));
        final int rounds = Integer.parseInt(arguments[3]);
        System.out.printf(Locale.ROOT, "%d keys, %d records, values of %d bytes, %s, %d rounds%n", program.keys,
            program.records, program.valueBytes, program.guarantee, rounds);
        for (int round = 0; round < rounds; round++) {
            for (int turn = 0; turn < program.arms.size(); turn++) {
                final String arm = program.arms.get((round + turn) % program.arms.size());
                program.run(arm, program.directory.resolve("round-" + round + "-" + turn));
            }
        }
        program.print();
    }

    private void run(final String arm, final Path place) throws Exception {
        Files.createDirectories(place);
        try (Broker broker = Broker.start(place.resolve("broker")); Admin admin = broker.admin()) {
            broker.create(PARTITIONS, CrashApplication.INPUT);
            load(broker.bootstrap());
            final Path log = place.resolve("first.log");
            final long start = System.nanoTime();
            final Process first = start(broker, arm, place, log);
            awaitRunning(first, log);
            final long running = System.nanoTime();
            awaitAllRead(admin, first, log);
            add(arm, "records per second, higher is better", records / seconds(running));
            add(arm, "CPU seconds, lower is better", cpuSeconds(first));
            add(arm, "resident MiB at the end, lower is better", residentMib(first));
            add(arm, "MiB on disk, lower is better", size(place.resolve("state")) / 1048576.0);
            first.destroyForcibly().waitFor();

            final Path secondLog = place.resolve("second.log");
            final long again = System.nanoTime();
            final Process second = start(broker, arm, place, secondLog);
            awaitRunning(second, secondLog);
            add(arm, "seconds from SIGKILL to running again, lower is better", seconds(again));
            add(arm, "records restored, lower is better", restored(secondLog));
            second.destroyForcibly().waitFor();
            System.out.printf(Locale.ROOT, "%s took %.1f s%n", place.getFileName() + " " + arm, seconds(start));
        } finally {
            Utils.delete(place.toFile());
        }
    }

    private Process start(final Broker broker, final String arm, final Path place, final Path log)
        throws IOException {
        final List<String> words = List.of(arm.split(";"));
        final List<String> arguments = new ArrayList<>(List.of(CrashApplication.class.getName(), broker.bootstrap(),
            place.resolve("state").toString(), words.getFirst(), "test.topology=state",
            "processing.guarantee=" + guarantee));
        arguments.addAll(words.subList(1, words.size()));
        return Broker.run(log, Broker.classPath(), "-Xmx512m", arguments);
    }

    /** Writes all input: each key as often as the others, in random order, values that compress like text. */
    private void load(final String bootstrap) {
        final Random random = new Random(1);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(Map.of(
            ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap, ProducerConfig.LINGER_MS_CONFIG, 20,
            ProducerConfig.BATCH_SIZE_CONFIG, 1 << 18), new StringSerializer(), new StringSerializer())) {
            for (long i = 0; i < records; i++) {
                final long key = i < keys ? i : random.nextLong(keys);
                producer.send(new ProducerRecord<>(CrashApplication.INPUT, String.format("%012d", key * 7919 % keys),
                    value(random)));
            }
        }
    }

    private String value(final Random random) {
        final StringBuilder value = new StringBuilder(valueBytes);
        while (value.length() < valueBytes) {
            value.append("{\"user\":").append(random.nextInt(100_000)).append(",\"state\":\"")
                .append(new String[] {"open", "paid", "sent", "done"}[random.nextInt(4)])
                .append("\",\"amount\":").append(random.nextInt(10_000)).append("},");
        }
        value.setLength(valueBytes);
        return value.toString();
    }

    private void awaitRunning(final Process process, final Path log) throws Exception {
        while (!Files.exists(log) || !Files.readAllLines(log).contains("APP STATE RUNNING")) {
            requireAlive(process, log);
            Thread.sleep(20);
        }
    }

    private void awaitAllRead(final Admin admin, final Process process, final Path log) throws Exception {
        while (committed(admin) < ends(admin)) {
            requireAlive(process, log);
            Thread.sleep(50);
        }
    }

    private static long committed(final Admin admin) throws ExecutionException, InterruptedException {
        return admin.listConsumerGroupOffsets("crash").partitionsToOffsetAndMetadata().get().values().stream()
            .mapToLong(OffsetAndMetadata::offset).sum();
    }

    private static long ends(final Admin admin) throws ExecutionException, InterruptedException {
        final Map<TopicPartition, OffsetSpec> asked = new TreeMap<>(
            (left, right) -> Integer.compare(left.partition(), right.partition()));
        IntStream.range(0, PARTITIONS).forEach(partition ->
            asked.put(new TopicPartition(CrashApplication.INPUT, partition), OffsetSpec.latest()));
        return admin.listOffsets(asked).all().get().values().stream()
            .mapToLong(ListOffsetsResultInfo::offset).sum();
    }

    private static void requireAlive(final Process process, final Path log) throws IOException {
        if (!process.isAlive()) {
            throw new IOException("the application ended:\n" + String.join("\n", Broker.tail(log, 40)));
        }
    }

    private static double restored(final Path log) throws IOException {
        return Files.readAllLines(log).stream().filter(line -> line.startsWith("APP RESTORED "))
            .mapToLong(line -> Long.parseLong(line.substring(line.lastIndexOf(' ') + 1))).sum();
    }

    private static double residentMib(final Process process) throws IOException {
        return Files.readAllLines(Path.of("/proc", String.valueOf(process.pid()), "status")).stream()
            .filter(line -> line.startsWith("VmRSS:"))
            .mapToDouble(line -> Double.parseDouble(line.replaceAll("[^0-9]", "")) / 1024).findFirst().orElseThrow();
    }

    private static double cpuSeconds(final Process process) {
        return process.info().totalCpuDuration().orElseThrow().toMillis() / 1000.0;
    }

    private static double size(final Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            return files.filter(Files::isRegularFile).mapToLong(file -> file.toFile().length()).sum();
        }
    }

    private static double seconds(final long since) {
        return (System.nanoTime() - since) / (double) TimeUnit.SECONDS.toNanos(1);
    }

    private void add(final String arm, final String figure, final double value) {
        figures.computeIfAbsent(figure, ignored -> new LinkedHashMap<>())
            .computeIfAbsent(arm, ignored -> new ArrayList<>()).add(value);
    }

    /** Medians, with the range in brackets. */
    private void print() {
        figures.forEach((figure, byArm) -> {
            System.out.println(figure);
            byArm.forEach((arm, values) -> {
                final double[] sorted = values.stream().mapToDouble(Double::doubleValue).sorted().toArray();
                System.out.printf(Locale.ROOT, "  %,12.1f  [%,.1f .. %,.1f]  %s%n", median(sorted), sorted[0],
                    sorted[sorted.length - 1], arm);
            });
        });
    }

    private static double median(final double[] sorted) {
        final int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle]
            : Arrays.stream(sorted, middle - 1, middle + 1).average().orElseThrow();
    }
}

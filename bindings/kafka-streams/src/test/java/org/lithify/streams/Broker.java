package org.lithify.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.Uuid;

import java.io.File;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A broker of one node, in a process of its own, on loopback. */
final class Broker implements AutoCloseable {
    private static final long START_SECONDS_MAX = 60;

    private final Process process;
    private final String bootstrap;

    private Broker(final Process process, final String bootstrap) {
        this.process = process;
        this.bootstrap = bootstrap;
    }

    static Broker start(final Path directory) throws IOException, InterruptedException {
        Files.createDirectories(directory);
        final int port = freePort();
        final Path settings = directory.resolve("server.properties");
        Files.write(settings, settings(directory, port, freePort()));
        run(directory.resolve("format.log"), "-Xmx256m", "kafka.tools.StorageTool", "format",
            "-t", Uuid.randomUuid().toString(), "-c", settings.toString()).waitFor();
        final Process process = run(directory.resolve("broker.log"), "-Xmx512m", "kafka.Kafka", settings.toString());
        final Broker broker = new Broker(process, "127.0.0.1:" + port);
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
        broker.awaitStart(directory);
        return broker;
    }

    String bootstrap() {
        return bootstrap;
    }

    Admin admin() {
        return Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap));
    }

    void create(final int partitions, final String... topics) throws Exception {
        try (Admin admin = admin()) {
            admin.createTopics(Stream.of(topics).map(topic -> new NewTopic(topic, partitions, (short) 1)).toList())
                .all().get(30, TimeUnit.SECONDS);
        }
    }

    @Override
    public void close() throws InterruptedException {
        process.destroy();
        if (!process.waitFor(20, TimeUnit.SECONDS)) {
            process.destroyForcibly().waitFor();
        }
    }

    /** Starts a program of this class path in a process of its own; its output goes to a file. */
    static Process run(final Path log, final String heap, final String... mainAndArguments) throws IOException {
        return run(log, classPath(), heap, List.of(mainAndArguments));
    }

    /** Starts a program of a class path. */
    static Process run(final Path log, final String classPath, final String heap,
                       final List<String> mainAndArguments) throws IOException {
        return new ProcessBuilder(command(classPath, heap, mainAndArguments)).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
    }

    /** How to start a program of a class path, with the library that this process has. */
    static List<String> command(final String classPath, final String heap, final List<String> mainAndArguments) {
        final List<String> command = new ArrayList<>(List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(), heap,
            "--enable-native-access=ALL-UNNAMED", "-cp", classPath));
        final String library = System.getProperty(NativeLibrary.PROPERTY);
        if (library != null) {
            command.add("-D" + NativeLibrary.PROPERTY + "=" + library);
        }
        command.addAll(mainAndArguments);
        return command;
    }

    static String classPath() {
        return System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    }

    /** The class path with Kafka Streams of an older version. */
    static String classPath(final String version) {
        final String directory = System.getProperty("lithify.older.directory");
        final String present = System.getProperty("lithify.kafka.version");
        return Stream.of(classPath().split(File.pathSeparator)).map(entry -> {
            for (final String artifact : List.of("kafka-streams", "kafka-clients", "kafka-streams-test-utils")) {
                if (entry.endsWith("/" + artifact + "-" + present + ".jar")) {
                    return directory + "/" + artifact + "-" + version + ".jar";
                }
            }
            return entry;
        }).collect(Collectors.joining(File.pathSeparator));
    }

    private void awaitStart(final Path directory) throws IOException, InterruptedException {
        final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_SECONDS_MAX);
        while (System.nanoTime() < end) {
            if (!process.isAlive()) {
                throw new IOException("the broker ended: "
                    + String.join("\n", tail(directory.resolve("broker.log"), 30)));
            }
            try (Admin admin = admin()) {
                admin.describeCluster().nodes().get(5, TimeUnit.SECONDS);
                return;
            } catch (final Exception e) {
                Thread.sleep(200);
            }
        }
        throw new IOException("the broker did not start in " + START_SECONDS_MAX + " s");
    }

    static List<String> tail(final Path file, final int lines) throws IOException {
        final List<String> all = Files.readAllLines(file);
        return all.subList(Math.max(0, all.size() - lines), all.size());
    }

    private static Collection<String> settings(final Path directory, final int port, final int controller) {
        return List.of(
            "process.roles=broker,controller",
            "node.id=1",
            "controller.quorum.voters=1@127.0.0.1:" + controller,
            "listeners=PLAINTEXT://127.0.0.1:" + port + ",CONTROLLER://127.0.0.1:" + controller,
            "advertised.listeners=PLAINTEXT://127.0.0.1:" + port,
            "controller.listener.names=CONTROLLER",
            "inter.broker.listener.name=PLAINTEXT",
            "log.dirs=" + directory.resolve("log"),
            "offsets.topic.replication.factor=1",
            "offsets.topic.num.partitions=4",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1",
            "transaction.state.log.num.partitions=4",
            "share.coordinator.state.topic.replication.factor=1",
            "share.coordinator.state.topic.min.isr=1",
            "group.initial.rebalance.delay.ms=0",
            "group.min.session.timeout.ms=1000",
            "auto.create.topics.enable=false");
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }
}

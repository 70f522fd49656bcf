package org.lithify.streams;

import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateRestoreListener;

import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;

/**
 * An application that counts exactly once, until it is killed.
 *
 * <p>Every input makes one record in each output topic, with the count so far: of its key, of its key in a window,
 * and of its group behind a repartition topic. Arguments: bootstrap server, state directory, {@code lithify} or
 * {@code built-in}, and settings {@code name=value}. With a setting {@code test.topology} it keeps the last value of
 * each key instead.
 */
public final class CrashApplication {
    static final String INPUT = "input";
    static final String COUNTS = "counts";
    static final String WINDOWS = "windows";
    static final String GROUPS = "groups";
    static final Duration WINDOW = Duration.ofSeconds(2);

    private CrashApplication() {
    }

    /** Runs until it is killed, or ended by a signal. */
    public static void main(final String[] arguments) throws InterruptedException {
        final Properties properties =
            Topologies.properties("crash", arguments[0], arguments[1], arguments[2].equals("lithify"));
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0L);
        properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        properties.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, BuiltInSettings.class);
        // The next process takes the place of the killed one at once, as a member of the group and as a producer.
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG), "one");
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), 6000);
        for (int i = 3; i < arguments.length; i++) {
            final String[] setting = arguments[i].split("=", 2);
            properties.put(setting[0], setting[1]);
        }
        run(properties.containsKey("test.topology") ? stateTopology(properties) : topology(properties), properties);
    }

    private static void run(final Topology topology, final Properties properties) throws InterruptedException {
        final KafkaStreams streams = new KafkaStreams(topology, properties);
        streams.setGlobalStateRestoreListener(new Restored());
        final CountDownLatch ended = new CountDownLatch(1);
        streams.setStateListener((now, before) -> say("STATE " + now));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(20));
            say("CLOSED");
            ended.countDown();
        }));
        streams.start();
        ended.await();
    }

    static Topology topology(final Properties properties) {
        final StreamsBuilder builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(properties)));
        final KStream<String, String> input =
            builder.stream(INPUT, Consumed.with(Serdes.String(), Serdes.String()));
        input.groupByKey().count(Materialized.as("counts-store"))
            .toStream().to(COUNTS, Produced.with(Serdes.String(), Serdes.Long()));
        input.groupByKey().windowedBy(TimeWindows.ofSizeWithNoGrace(WINDOW)).count(Materialized.as("windows-store"))
            .toStream((window, count) -> window.key() + "@" + window.window().start())
            .to(WINDOWS, Produced.with(Serdes.String(), Serdes.Long()));
        input.map((key, value) -> KeyValue.pair(group(value), value))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String())).count(Materialized.as("groups-store"))
            .toStream().to(GROUPS, Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build(properties);
    }

    /** One store that holds the last value of each key. */
    private static Topology stateTopology(final Properties properties) {
        final StreamsBuilder builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(properties)));
        builder.stream(INPUT, Consumed.with(Serdes.String(), Serdes.String())).groupByKey()
            .reduce((before, now) -> now, Materialized.as("state-store"));
        return builder.build(properties);
    }

    /** The group of a value. */
    static String group(final String value) {
        return "g" + Math.floorMod(value.hashCode(), 7);
    }

    private static void say(final String line) {
        System.out.println("APP " + line);
        System.out.flush();
    }

    private static final class Restored implements StateRestoreListener {
        @Override
        public void onRestoreStart(final TopicPartition partition, final String store, final long start,
                                   final long end) {
            say("RESTORE " + store + " " + partition.partition() + " from " + start + " to " + end);
        }

        @Override
        public void onBatchRestored(final TopicPartition partition, final String store, final long end,
                                    final long records) {
        }

        @Override
        public void onRestoreEnd(final TopicPartition partition, final String store, final long records) {
            say("RESTORED " + store + " " + partition.partition() + " " + records);
        }
    }
}

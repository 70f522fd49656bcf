package org.lithify.streams;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;

import java.util.Properties;
import java.util.TreeSet;

import static java.time.Duration.ofSeconds;

/** A topology with every kind of store that the DSL makes. */
final class Topologies {
    static final Serde<String> STRING = Serdes.String();

    private Topologies() {
    }

    /** Everything, into topics named after the operators; source topics are {@code a}, {@code b}, {@code t}, {@code u}. */
    static Topology everything(final Properties properties) {
        final StreamsBuilder builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(properties)));
        final KStream<String, String> a = builder.stream("a", Consumed.with(STRING, STRING));
        final KStream<String, String> b = builder.stream("b", Consumed.with(STRING, STRING));
        aggregations(a.groupByKey(Grouped.with(STRING, STRING)));
        emittedAtClose(a.groupByKey(Grouped.with(STRING, STRING)));
        joins(a, b);
        tables(builder, a);
        return builder.build(properties);
    }

    private static void aggregations(final KGroupedStream<String, String> a) {
        out(a.count(Named.as("count"), Materialized.as("count-store")).toStream().mapValues(String::valueOf), "count");
        windowed(a.windowedBy(TimeWindows.ofSizeAndGrace(ofSeconds(10), ofSeconds(20)).advanceBy(ofSeconds(5)))
            .count(Materialized.as("window-store")).toStream().mapValues(String::valueOf), "hopping");
        windowed(a.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ofSeconds(6), ofSeconds(20)))
            .reduce(Topologies::append, Materialized.as("sliding-store")).toStream(), "sliding");
        windowed(a.windowedBy(SessionWindows.ofInactivityGapAndGrace(ofSeconds(3), ofSeconds(15)))
            .reduce(Topologies::append, Materialized.as("session-store")).toStream(), "sessions");
        windowed(a.windowedBy(TimeWindows.ofSizeAndGrace(ofSeconds(10), ofSeconds(5))).count()
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
            .toStream().mapValues(String::valueOf), "suppressed");
    }

    private static void emittedAtClose(final KGroupedStream<String, String> a) {
        windowed(a.windowedBy(TimeWindows.ofSizeAndGrace(ofSeconds(10), ofSeconds(5)))
            .emitStrategy(EmitStrategy.onWindowClose()).count().toStream().mapValues(String::valueOf), "final-windows");
        windowed(a.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ofSeconds(6), ofSeconds(5)))
            .emitStrategy(EmitStrategy.onWindowClose()).reduce(Topologies::append).toStream(), "final-sliding");
        windowed(a.windowedBy(SessionWindows.ofInactivityGapAndGrace(ofSeconds(3), ofSeconds(5)))
            .emitStrategy(EmitStrategy.onWindowClose()).reduce(Topologies::append).toStream(), "final-sessions");
    }

    private static void joins(final KStream<String, String> a, final KStream<String, String> b) {
        final JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(ofSeconds(4), ofSeconds(6));
        final StreamJoined<String, String, String> serdes = StreamJoined.with(STRING, STRING, STRING);
        out(a.join(b, Topologies::pair, windows, serdes), "inner");
        out(a.leftJoin(b, Topologies::pair, windows, serdes), "left");
        out(a.outerJoin(b, Topologies::pair, windows, serdes), "outer");
    }

    private static void tables(final StreamsBuilder builder, final KStream<String, String> a) {
        final KTable<String, String> t = builder.table("t", Consumed.with(STRING, STRING), Materialized.as("t-store"));
        final KTable<String, String> u = builder.table("u", Consumed.with(STRING, STRING), Materialized.as("u-store"));
        out(a.leftJoin(t, Topologies::pair), "stream-table");
        out(t.outerJoin(u, Topologies::pair, Materialized.as("table-table-store")).toStream(), "table-table");
        out(t.leftJoin(u, value -> value.substring(0, 2), Topologies::pair, Materialized.as("foreign-store"))
            .toStream(), "foreign");
        out(t.groupBy((key, value) -> KeyValue.pair(value.substring(0, 2), value), Grouped.with(STRING, STRING))
            .aggregate(() -> "", (key, value, all) -> change(all, value, true),
                (key, value, all) -> change(all, value, false), Materialized.as("grouped-store"))
            .toStream(), "grouped");
    }

    private static void out(final KStream<String, String> stream, final String topic) {
        stream.to("out-" + topic, Produced.with(STRING, STRING));
    }

    private static void windowed(final KStream<Windowed<String>, String> stream, final String topic) {
        out(stream.map((key, value) -> KeyValue.pair(
            key.key() + "@" + key.window().start() + ".." + key.window().end(), value)), topic);
    }

    private static String append(final String all, final String value) {
        final String both = all + "," + value;
        return both.length() > 200 ? both.substring(both.length() - 200) : both;
    }

    private static String pair(final String left, final String right) {
        return left + "|" + right;
    }

    private static String change(final String all, final String value, final boolean add) {
        final TreeSet<String> values = new TreeSet<>();
        for (final String one : all.split(",")) {
            if (!one.isEmpty()) {
                values.add(one);
            }
        }
        if (add) {
            values.add(value);
        } else {
            values.remove(value);
        }
        return String.join(",", values);
    }

    /** Settings of an application whose stores are Lithify's, or the built-in ones. */
    static Properties properties(final String application, final String bootstrap, final String stateDirectory,
                                 final boolean lithify) {
        final Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, stateDirectory);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(LithifyConfig.MEMORY_BYTES_CONFIG, 128L << 20);
        if (lithify) {
            properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, LithifyDslStoreSuppliers.class);
        }
        return properties;
    }
}

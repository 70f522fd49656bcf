package org.lithify.streams;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsException;

import java.nio.file.Path;
import java.util.Map;

/**
 * A store that is written until the system refuses, which {@link StoreLifecycleTest} has it do by a limit on the
 * size of a file. The argument is the directory of the state. It prints every commit, and what came of the failure.
 */
public final class FullDiskApplication {
    static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);
    private static final long COMMITS_MAX = 20_000;

    private FullDiskApplication() {
    }

    /** Writes and commits one row of 1 KB after the other. */
    public static void main(final String[] arguments) {
        final LithifyKeyValueStore store = new LithifyKeyValueStore("store");
        store.init(TestContext.of(Path.of(arguments[0]), StreamsConfig.EXACTLY_ONCE_V2), store);
        try {
            for (long i = 0; i < COMMITS_MAX; i++) {
                store.put(TestContext.bytes("key" + i), new byte[1000]);
                store.commit(Map.of(CHANGELOG, i));
                System.out.println("COMMITTED " + i);
            }
        } catch (final StreamsException e) {
            System.out.println("REFUSED " + e.getMessage().replace('\n', ' '));
        }
        System.out.println("READS " + (store.get(TestContext.bytes("key0")) != null));
        try {
            store.close();
        } catch (final StreamsException e) {
            System.out.println("CLOSING " + e.getMessage().replace('\n', ' '));
        }
    }
}

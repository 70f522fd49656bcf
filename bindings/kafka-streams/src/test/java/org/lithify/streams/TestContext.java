package org.lithify.streams;

import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.state.internals.ThreadCache;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.MockRecordCollector;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

/** What a store needs of Streams, in a test. */
final class TestContext {
    private static final int COPIES_MAX = 100;

    private TestContext() {
    }

    /** A context of task 0_0 with its state in {@code directory}. */
    static InternalMockProcessorContext<?, ?> of(final Path directory, final String guarantee,
                                                 final Object... settings) {
        final Properties properties = Topologies.properties("test", "unused:1", directory.toString(), true);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        for (int i = 0; i < settings.length; i += 2) {
            properties.put(settings[i], settings[i + 1]);
        }
        final InternalMockProcessorContext<?, ?> context = new InternalMockProcessorContext<>(directory.toFile(),
            Serdes.String(), Serdes.String(), new MockRecordCollector(),
            new ThreadCache(new LogContext(), 0, new org.apache.kafka.streams.processor.internals.MockStreamsMetrics(
                new Metrics())), new StreamsConfig(properties));
        context.setTime(1L);
        return context;
    }

    static Bytes bytes(final String text) {
        return Bytes.wrap(text.getBytes());
    }

    /**
     * Copies a directory as it is: what a crash at this moment would leave. Threads of the database may add and remove
     * files meanwhile, and what is copied then was there at no moment: it is copied again.
     */
    static Path copy(final Path from, final Path to) throws IOException {
        for (int tries = 0; tries < COPIES_MAX; tries++) {
            final Map<Path, List<Object>> before = listing(from);
            if (before != null && isCopied(from, to) && before.equals(listing(from))) {
                return to;
            }
            Utils.delete(to.toFile());
        }
        throw new IOException("never quiet: " + from);
    }

    /** Sizes and times of all files; null if one went meanwhile. */
    private static Map<Path, List<Object>> listing(final Path directory) throws IOException {
        final Map<Path, List<Object>> files = new TreeMap<>();
        try {
            Files.walkFileTree(directory, new SimpleFileVisitor<>() {
                @Override
                public FileVisitResult visitFile(final Path file, final BasicFileAttributes attributes) {
                    files.put(file, List.of(attributes.size(), attributes.lastModifiedTime()));
                    return FileVisitResult.CONTINUE;
                }
            });
        } catch (final NoSuchFileException gone) {
            return null;
        }
        return files;
    }

    private static boolean isCopied(final Path from, final Path to) throws IOException {
        try {
            copyFiles(from, to);
            return true;
        } catch (final NoSuchFileException gone) {
            return false;
        }
    }

    private static void copyFiles(final Path from, final Path to) throws IOException {
        Files.walkFileTree(from, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(final Path directory, final BasicFileAttributes attributes)
                throws IOException {
                Files.createDirectories(to.resolve(from.relativize(directory)));
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(final Path file, final BasicFileAttributes attributes)
                throws IOException {
                Files.copy(file, to.resolve(from.relativize(file)));
                return FileVisitResult.CONTINUE;
            }
        });
    }
}

package org.lithify.streams;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** README.md: its example compiles, and its table has every setting with its default. */
class PageTest {
    private static final Path PAGE = Path.of("README.md");

    @TempDir
    private Path directory;

    @Test
    void theExampleCompiles() throws IOException {
        final List<String> lines = Files.readAllLines(PAGE);
        final int start = lines.indexOf("```java");
        final String example = lines.subList(start + 1, start + 1 + lines.subList(start + 1, lines.size())
            .indexOf("```")).stream().collect(Collectors.joining("\n"));
        final Path source = Files.writeString(directory.resolve("Example.java"), Stream.of(
            "java.util.Properties", "org.apache.kafka.common.serialization.Serdes", "org.apache.kafka.streams.*",
            "org.apache.kafka.streams.kstream.*").map(name -> "import " + name + ";\n").collect(Collectors.joining())
            + "class Example { static void run() {\n" + example + "\n} }\n");
        final JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        assertEquals(0, compiler.run(null, null, null, "-cp", Broker.classPath(), "-d", directory.toString(),
            source.toString()));
    }

    @Test
    void everySettingIsInTheTable() throws IOException {
        final List<String> lines = Files.readAllLines(PAGE);
        for (final String setting : LithifyConfig.configDef().names()) {
            assertTrue(lines.stream().anyMatch(line -> line.startsWith("| `" + setting + "` |")), setting);
        }
        final LithifyConfig defaults = new LithifyConfig(java.util.Map.of());
        assertEquals(256L << 20, defaults.memoryBytes());
        assertEquals(64L << 20, defaults.uncommittedMaxBytes());
        assertEquals(2, defaults.backgroundThreads());
    }
}

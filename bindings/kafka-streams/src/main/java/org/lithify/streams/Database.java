package org.lithify.streams;

import java.lang.foreign.Arena;
import java.lang.invoke.MethodHandle;
import java.lang.ref.Reference;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * An open database of the engine. Any thread may use it.
 *
 * <p>It knows nothing of Kafka; {@link TaskDatabase} does.
 */
final class Database extends Handle {
    private Database(final long address) {
        super(address, Native.DB_FREE);
    }

    static Database open(final Path directory, final Map<String, String> options, final SharedResources resources) {
        final Scratch scratch = Scratch.get();
        try (Arena arena = Arena.ofConfined()) {
            final long optionsAddress = (long) Native.OPTIONS_NEW.invokeExact();
            try {
                setAll(Native.OPTIONS_SET, optionsAddress, options, arena);
                Native.check((int) Native.OPEN.invokeExact(Native.cText(arena, directory.toString()), optionsAddress,
                    resources.address(), scratch.slot(0), scratch.message()), scratch);
            } finally {
                Native.release(Native.OPTIONS_FREE, optionsAddress);
            }
            return new Database(scratch.slotValue(0));
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        }
    }

    /** Names of the options of a database. All other options are those of a family. */
    static Set<String> optionNames() {
        final Scratch scratch = Scratch.get();
        final String text;
        try {
            final long optionsAddress = (long) Native.OPTIONS_NEW.invokeExact();
            try {
                Native.check((int) Native.OPTIONS_TEXT.invokeExact(optionsAddress, scratch.slot(0),
                    scratch.message()), scratch);
            } finally {
                Native.release(Native.OPTIONS_FREE, optionsAddress);
            }
            text = Native.text(scratch.slotValue(0));
            Native.free(scratch.slotValue(0));
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        }
        return Arrays.stream(text.split("\\s+")).map(option -> option.split("=", 2)[0])
            .collect(Collectors.toSet());
    }

    /** The family of that name, made if there is none. */
    Family family(final String name, final Map<String, String> options) {
        final Scratch scratch = Scratch.get();
        try (Arena arena = Arena.ofConfined()) {
            final long optionsAddress = (long) Native.FAMILY_OPTIONS_NEW.invokeExact();
            try {
                setAll(Native.FAMILY_OPTIONS_SET, optionsAddress, options, arena);
                Native.check((int) Native.FAMILY_OPEN.invokeExact(address(), Native.cText(arena, name), optionsAddress,
                    scratch.slot(0), scratch.message()), scratch);
            } finally {
                Native.release(Native.FAMILY_OPTIONS_FREE, optionsAddress);
            }
            return new Family(this, scratch.slotValue(0));
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** The family of that name; null if there is none. */
    Family existingFamily(final String name) {
        final Scratch scratch = Scratch.get();
        try (Arena arena = Arena.ofConfined()) {
            final int code = Native.check((int) Native.FAMILY_EXISTING.invokeExact(address(),
                Native.cText(arena, name), scratch.slot(0), scratch.message()), scratch);
            return code == Native.ABSENT ? null : new Family(this, scratch.slotValue(0));
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Writes all memtables to tables. */
    void flush() {
        final Scratch scratch = Scratch.get();
        try {
            Native.check((int) Native.FLUSH.invokeExact(address(), scratch.message()), scratch);
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Closes it: whatever still refers to it fails from now on. */
    void close() {
        final Scratch scratch = Scratch.get();
        try {
            Native.check((int) Native.CLOSE.invokeExact(address(), scratch.message()), scratch);
        } catch (final Throwable e) {
            throw Native.unexpected(e);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private static void setAll(final MethodHandle setter, final long target, final Map<String, String> options,
                               final Arena arena) throws Throwable {
        final Scratch scratch = Scratch.get();
        for (final Map.Entry<String, String> option : options.entrySet()) {
            Native.check((int) setter.invokeExact(target, Native.cText(arena, option.getKey()),
                Native.cText(arena, option.getValue()), scratch.message()), scratch);
        }
    }
}

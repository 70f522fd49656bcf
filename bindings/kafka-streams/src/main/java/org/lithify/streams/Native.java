package org.lithify.streams;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

/**
 * The functions of {@code lithify.h} that the stores use, by hand.
 *
 * <p>Pointers and sizes are {@code long} here: both are 64 bits wide and are passed alike, and a call needs no
 * object for them. Only the classes of this package that own a handle call this one. Every function that can
 * fail takes the address of a message last; {@link #check} turns its code into an exception.
 */
final class Native {
    static final int OK = 0;
    static final int ABSENT = 1;
    static final int SHORT = 2;
    /** The length of a removal in a buffer of rows. */
    static final int REMOVAL = 0xFFFFFFFF;
    static final int START_EXCLUDED = 1;
    static final int END_INCLUDED = 2;
    static final int FORWARD = 0;
    static final int BACKWARD = 1;
    static final int DURABILITY_DEFAULT = 0;
    static final long NULL = 0;

    static final MethodHandle VERSION = function("lithify_version", JAVA_LONG);
    static final MethodHandle FREE = procedure("lithify_free", JAVA_LONG);
    static final MethodHandle OPTIONS_NEW = function("lithify_options_new", JAVA_LONG);
    static final MethodHandle OPTIONS_FREE = procedure("lithify_options_free", JAVA_LONG);
    static final MethodHandle OPTIONS_SET = fallible("lithify_options_set", 3);
    static final MethodHandle OPTIONS_TEXT = fallible("lithify_options_text", 2);
    static final MethodHandle FAMILY_OPTIONS_NEW = function("lithify_family_options_new", JAVA_LONG);
    static final MethodHandle FAMILY_OPTIONS_FREE = procedure("lithify_family_options_free", JAVA_LONG);
    static final MethodHandle FAMILY_OPTIONS_SET = fallible("lithify_family_options_set", 3);
    static final MethodHandle RESOURCES_NEW = fallible("lithify_resources_new", 3);
    static final MethodHandle RESOURCES_USED = function("lithify_resources_used_bytes", JAVA_LONG, JAVA_LONG);
    static final MethodHandle RESOURCES_FREE = procedure("lithify_resources_free", JAVA_LONG);

    static final MethodHandle OPEN = fallible("lithify_open", 4);
    static final MethodHandle CLOSE = fallible("lithify_close", 1);
    static final MethodHandle DB_FREE = procedure("lithify_db_free", JAVA_LONG);
    static final MethodHandle FLUSH = fallible("lithify_flush", 1);
    static final MethodHandle FAMILY_OPEN = fallible("lithify_family_open", 4);
    static final MethodHandle FAMILY_EXISTING = fallible("lithify_family_existing", 3);
    static final MethodHandle FAMILY_FREE = procedure("lithify_family_free", JAVA_LONG);
    static final MethodHandle APPROXIMATE = fallible("lithify_approximate", 7);

    static final MethodHandle BATCH_NEW = function("lithify_batch_new", JAVA_LONG);
    static final MethodHandle BATCH_FREE = procedure("lithify_batch_free", JAVA_LONG);
    static final MethodHandle BATCH_CLEAR = procedure("lithify_batch_clear", JAVA_LONG);
    static final MethodHandle BATCH_ROWS = fallible("lithify_batch_rows", 4);
    static final MethodHandle BATCH_DELETE_RANGE = fallible("lithify_batch_delete_range", 6);
    static final MethodHandle BATCH_COMMIT = function("lithify_batch_commit",
        JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG);

    static final MethodHandle GET_INTO = fallible("lithify_get_into", 7);
    static final MethodHandle SNAPSHOT_NEW = function("lithify_snapshot_new", JAVA_LONG, JAVA_LONG, JAVA_LONG);
    static final MethodHandle SNAPSHOT_FREE = procedure("lithify_snapshot_free", JAVA_LONG);
    static final MethodHandle CURSOR_OPEN = function("lithify_cursor_open", JAVA_INT,
        JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG);
    static final MethodHandle CURSOR_FREE = procedure("lithify_cursor_free", JAVA_LONG);
    static final MethodHandle CURSOR_FILL = function("lithify_cursor_fill", JAVA_INT,
        JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);

    private Native() {
    }

    /** Throws what {@code code} stands for if it is a failure; the text is taken from {@code scratch}. */
    static int check(final int code, final Scratch scratch) {
        if (code < 0) {
            throw new LithifyException(code, scratch.takeMessage());
        }
        return code;
    }

    /** A failure of the call itself, not of the engine. */
    static RuntimeException unexpected(final Throwable e) {
        if (e instanceof RuntimeException runtime) {
            return runtime;
        }
        if (e instanceof Error error) {
            throw error;
        }
        return new IllegalStateException(e);
    }

    /** The text at {@code address}, ended by a zero. */
    static String text(final long address) {
        if (address == NULL) {
            return "";
        }
        return MemorySegment.ofAddress(address).reinterpret(Long.MAX_VALUE).getString(0, StandardCharsets.UTF_8);
    }

    static void free(final long address) {
        try {
            FREE.invokeExact(address);
        } catch (final Throwable e) {
            throw unexpected(e);
        }
    }

    /** Calls a function that frees or empties something. */
    static void release(final MethodHandle procedure, final long address) {
        try {
            procedure.invokeExact(address);
        } catch (final Throwable e) {
            throw unexpected(e);
        }
    }

    /** The version of the library that was loaded. */
    static String version() {
        try {
            return text((long) VERSION.invokeExact());
        } catch (final Throwable e) {
            throw unexpected(e);
        }
    }

    /** A text of C in memory of {@code arena}. */
    static long cText(final Arena arena, final String text) {
        return arena.allocateFrom(text, StandardCharsets.UTF_8).address();
    }

    /** Bytes in memory of {@code arena}. */
    static long cBytes(final Arena arena, final byte[] bytes) {
        return arena.allocateFrom(JAVA_BYTE, bytes).address();
    }

    private static MethodHandle function(final String name, final MemoryLayout result, final MemoryLayout... arguments) {
        return link(name, FunctionDescriptor.of(result, arguments));
    }

    private static MethodHandle procedure(final String name, final MemoryLayout... arguments) {
        return link(name, FunctionDescriptor.ofVoid(arguments));
    }

    /** A function of {@code count} pointers or sizes and the address of a message; it returns a code. */
    private static MethodHandle fallible(final String name, final int count) {
        final MemoryLayout[] arguments = new MemoryLayout[count + 1];
        java.util.Arrays.fill(arguments, JAVA_LONG);
        return link(name, FunctionDescriptor.of(JAVA_INT, arguments));
    }

    private static MethodHandle link(final String name, final FunctionDescriptor type) {
        final SymbolLookup lookup = NativeLibrary.lookup();
        return Linker.nativeLinker().downcallHandle(
            lookup.find(name).orElseThrow(() -> new UnsatisfiedLinkError("Lithify's library has no function " + name)),
            type);
    }
}

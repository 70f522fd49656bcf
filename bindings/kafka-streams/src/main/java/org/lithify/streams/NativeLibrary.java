package org.lithify.streams;

import org.apache.kafka.streams.errors.StreamsException;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Set;

/**
 * Finds and loads the native library.
 *
 * <p>The first of these is taken: the system property {@code lithify.library.path}, the environment variable
 * {@code LITHIFY_LIBRARY}, the library in the jar. The last is written to a temporary file that is named by
 * its content, so that processes share it.
 */
final class NativeLibrary {
    static final String PROPERTY = "lithify.library.path";
    static final String ENVIRONMENT = "LITHIFY_LIBRARY";
    /** LITHIFY_INTERFACE of the header that {@link Native} was written against. */
    static final int INTERFACE = 1;

    private static final Set<PosixFilePermission> OWNER_ONLY = PosixFilePermissions.fromString("rwx------");
    private static final SymbolLookup LOOKUP;
    private static final UnsatisfiedLinkError FAILURE;

    static {
        SymbolLookup lookup = null;
        UnsatisfiedLinkError failure = null;
        try {
            lookup = load(locate());
        } catch (final UnsatisfiedLinkError error) {
            failure = error;
        }
        LOOKUP = lookup;
        FAILURE = failure;
    }

    private NativeLibrary() {
    }

    /** Throws unless the library is there and of the right interface. */
    static void require() {
        if (FAILURE != null) {
            throw new StreamsException("Lithify's native library cannot be used: " + FAILURE.getMessage(), FAILURE);
        }
    }

    static SymbolLookup lookup() {
        require();
        return LOOKUP;
    }

    /** Loads the library at {@code path} and compares its interface with this jar's. */
    static SymbolLookup load(final Path path) {
        final SymbolLookup lookup;
        final int found;
        try {
            lookup = SymbolLookup.libraryLookup(path, Arena.global());
        } catch (final IllegalArgumentException e) {
            throw linkError(path + " cannot be loaded: " + e.getMessage(), e);
        }
        try {
            found = (int) Linker.nativeLinker().downcallHandle(
                lookup.find("lithify_interface").orElseThrow(() ->
                    linkError(path + " has no function lithify_interface: it is not Lithify's library", null)),
                FunctionDescriptor.of(ValueLayout.JAVA_INT)).invokeExact();
        } catch (final UnsatisfiedLinkError e) {
            throw e;
        } catch (final Throwable e) {
            throw linkError(path + ": lithify_interface failed", e);
        }
        if (found != INTERFACE) {
            throw linkError(path + " has interface " + found + ", and this jar needs " + INTERFACE
                + ": use the library and the jar of one release", null);
        }
        return lookup;
    }

    private static Path locate() {
        final String property = System.getProperty(PROPERTY);
        final String chosen = property != null ? property : System.getenv(ENVIRONMENT);
        if (chosen != null) {
            final Path path = Path.of(chosen).toAbsolutePath();
            if (!Files.isRegularFile(path)) {
                throw linkError(path + " is no file; " + PROPERTY + " or " + ENVIRONMENT + " names it", null);
            }
            return path;
        }
        return extract();
    }

    private static Path extract() {
        final String resource = "/META-INF/native/" + platform() + "/liblithify_c.so";
        try (InputStream in = NativeLibrary.class.getResourceAsStream(resource)) {
            if (in == null) {
                throw linkError("this jar has no " + resource + "; name a library with -D" + PROPERTY, null);
            }
            return writeOnce(in.readAllBytes());
        } catch (final IOException | NoSuchAlgorithmException e) {
            throw linkError(resource + " cannot be extracted: " + e.getMessage(), e);
        }
    }

    private static Path writeOnce(final byte[] library) throws IOException, NoSuchAlgorithmException {
        final byte[] hash = MessageDigest.getInstance("SHA-256").digest(library);
        final Path directory = ownDirectory();
        final Path target = directory.resolve("liblithify_c-" + HexFormat.of().formatHex(hash, 0, 12) + ".so");
        if (Files.isRegularFile(target)
            && MessageDigest.isEqual(hash, MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(target)))) {
            return target;
        }
        final Path part = Files.createTempFile(directory, "liblithify_c", ".part");
        Files.write(part, library);
        try {
            Files.move(part, target, StandardCopyOption.ATOMIC_MOVE);
        } catch (final AtomicMoveNotSupportedException e) {
            Files.move(part, target, StandardCopyOption.REPLACE_EXISTING);
        }
        return target;
    }

    /** A directory that nobody else may write to: whoever can exchange the library has this process. */
    private static Path ownDirectory() throws IOException {
        final FileAttribute<?> ownerOnly = PosixFilePermissions.asFileAttribute(OWNER_ONLY);
        final String user = System.getProperty("user.name", "user");
        final Path directory = Path.of(System.getProperty("java.io.tmpdir"),
            "lithify-" + user.replaceAll("[^A-Za-z0-9_-]", "_"));
        try {
            return Files.createDirectory(directory, ownerOnly);
        } catch (final FileAlreadyExistsException e) {
            final PosixFileAttributes found =
                Files.readAttributes(directory, PosixFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
            final boolean isOwn = found.isDirectory() && found.owner().getName().equals(user)
                && found.permissions().equals(OWNER_ONLY);
            return isOwn ? directory : Files.createTempDirectory("lithify-", ownerOnly);
        }
    }

    private static String platform() {
        final String system = System.getProperty("os.name").toLowerCase(java.util.Locale.ROOT);
        final String machine = System.getProperty("os.arch");
        return (system.contains("linux") ? "linux" : system.replace(' ', '-')) + "-"
            + (machine.equals("amd64") ? "x86_64" : machine);
    }

    private static UnsatisfiedLinkError linkError(final String text, final Throwable cause) {
        final UnsatisfiedLinkError error = new UnsatisfiedLinkError(text);
        if (cause != null) {
            error.initCause(cause);
        }
        return error;
    }
}

package org.lithify.streams;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.Predicate;

/**
 * A session store: aggregates by key, start and end of a session, dropped after the retention period.
 *
 * <p>A stored key is the segment of the session's end, the key, the end and the start; a changelog key is the same
 * without the segment.
 */
class LithifySessionStore extends SegmentedStore implements SessionStore<Bytes, byte[]> {
    private static final int SUFFIX_BYTES = 2 * Long.BYTES;

    LithifySessionStore(final String name, final long retentionPeriod, final long segmentInterval) {
        super(name, retentionPeriod, segmentInterval);
    }

    @Override
    String format() {
        return "session plain 1";
    }

    @Override
    final long expiryTime(final byte[] changelogKey) {
        return end(changelogKey);
    }

    @Override
    final byte[] storedKey(final byte[] changelogKey, final byte[] segment) {
        return ByteRange.concat(segment, changelogKey);
    }

    @Override
    public void put(final Windowed<Bytes> sessionKey, final byte[] aggregate) {
        Objects.requireNonNull(sessionKey, "sessionKey cannot be null");
        Objects.requireNonNull(sessionKey.key(), "sessionKey.key() cannot be null");
        write(sessionKey.window().end(), segment -> encode(segment, sessionKey), aggregate);
    }

    @Override
    public void remove(final Windowed<Bytes> sessionKey) {
        Objects.requireNonNull(sessionKey, "sessionKey cannot be null");
        remove(sessionKey.window().end(), segment -> encode(segment, sessionKey));
    }

    @Override
    public byte[] fetchSession(final Bytes key, final long sessionStartTime, final long sessionEndTime) {
        Objects.requireNonNull(key, "key cannot be null");
        return read(sessionEndTime, segment -> encode(segment, key.get(), sessionEndTime, sessionStartTime));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(final Bytes key, final long earliestSessionEndTime,
                                                                  final long latestSessionStartTime) {
        return ofKey(key, earliestSessionEndTime, latestSessionStartTime, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(final Bytes key,
                                                                          final long earliestSessionEndTime,
                                                                          final long latestSessionStartTime) {
        return ofKey(key, earliestSessionEndTime, latestSessionStartTime, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(final Bytes keyFrom, final Bytes keyTo,
                                                                  final long earliestSessionEndTime,
                                                                  final long latestSessionStartTime) {
        return ofKeys(keyFrom, keyTo, earliestSessionEndTime, latestSessionStartTime, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(final Bytes keyFrom, final Bytes keyTo,
                                                                          final long earliestSessionEndTime,
                                                                          final long latestSessionStartTime) {
        return ofKeys(keyFrom, keyTo, earliestSessionEndTime, latestSessionStartTime, false);
    }

    /** All sessions that end between two times: what emission when a session closes asks for. */
    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(final long earliestSessionEndTime,
                                                                  final long latestSessionEndTime) {
        return sessions(iterator(earliestSessionEndTime, latestSessionEndTime, lastTime -> ByteRange.ALL,
            stored -> end(stored) >= earliestSessionEndTime && end(stored) <= latestSessionEndTime, true));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(final Bytes key) {
        return findSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(final Bytes key) {
        return backwardFindSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(final Bytes keyFrom, final Bytes keyTo) {
        return findSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(final Bytes keyFrom, final Bytes keyTo) {
        return backwardFindSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }

    private WindowedIterator ofKey(final Bytes key, final long earliestEnd, final long latestStart, final boolean forward) {
        Objects.requireNonNull(key, "key cannot be null");
        final byte[] bytes = key.get();
        final long from = Math.max(0, liveFrom(earliestEnd));
        final byte[] none = new byte[0];
        return sessions(iterator(from, Long.MAX_VALUE,
            lastTime -> ByteRange.closed(encode(none, bytes, from, 0), encode(none, bytes, lastTime, Long.MAX_VALUE)),
            overlaps(from, latestStart).and(stored -> Arrays.equals(key(stored), bytes)), forward));
    }

    private WindowedIterator ofKeys(final Bytes keyFrom, final Bytes keyTo, final long earliestEnd, final long latestStart,
                             final boolean forward) {
        if (keyFrom != null && keyTo != null && keyFrom.compareTo(keyTo) > 0) {
            return sessions(emptyAfterInvertedRange());
        }
        final byte[] first = keyFrom == null ? null : keyFrom.get();
        final byte[] last = keyTo == null ? null : keyTo.get();
        final long from = Math.max(0, liveFrom(earliestEnd));
        return sessions(iterator(from, Long.MAX_VALUE, lastTime -> new ByteRange(first, endOf(last, lastTime)),
            overlaps(from, latestStart).and(stored -> LithifyWindowStore.isBetween(key(stored), first, last)),
            forward));
    }

    private static byte[] endOf(final byte[] lastKey, final long lastTime) {
        return lastKey == null ? null
            : ByteRange.after(WindowKeys.greatest(lastKey, encode(new byte[0], new byte[0], lastTime,
                Long.MAX_VALUE)));
    }

    private static Predicate<byte[]> overlaps(final long earliestEnd, final long latestStart) {
        return stored -> end(stored) >= earliestEnd && start(stored) <= latestStart;
    }

    private static byte[] encode(final byte[] segment, final Windowed<Bytes> session) {
        return encode(segment, session.key().get(), session.window().end(), session.window().start());
    }

    private static byte[] encode(final byte[] segment, final byte[] key, final long end, final long start) {
        return ByteBuffer.allocate(segment.length + key.length + SUFFIX_BYTES)
            .put(segment).put(key).putLong(end).putLong(start).array();
    }

    private static byte[] key(final byte[] stored) {
        return Arrays.copyOfRange(stored, SEGMENT_BYTES, stored.length - SUFFIX_BYTES);
    }

    private static long end(final byte[] stored) {
        return ByteBuffer.wrap(stored).getLong(stored.length - SUFFIX_BYTES);
    }

    private static long start(final byte[] stored) {
        return ByteBuffer.wrap(stored).getLong(stored.length - Long.BYTES);
    }

    private static WindowedIterator sessions(final StoreIterator rows) {
        return new WindowedIterator(rows, LithifySessionStore::session);
    }

    private static Windowed<Bytes> session(final byte[] stored) {
        return new Windowed<>(Bytes.wrap(key(stored)), new SessionWindow(start(stored), end(stored)));
    }
}

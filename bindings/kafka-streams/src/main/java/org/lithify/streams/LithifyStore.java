package org.lithify.streams;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.internals.RecordCollector;
import org.apache.kafka.streams.processor.internals.Task.TaskType;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.function.Supplier;

/**
 * What all stores of this package have in common: opening and closing, commits, restoring, queries, failures.
 *
 * <p>The stream thread writes; threads of interactive queries read. {@link StoreRows} holds the rows.
 */
abstract class LithifyStore implements StateStore {
    /** The built-in stores' sentence; applications and tests look for it. */
    static final String INVERTED_RANGE =
        "Returning empty iterator for fetch with invalid key range: from > to. "
            + "This may be due to range arguments set in the wrong order, "
            + "or serdes that don't preserve ordering when lexicographically comparing the serialized bytes. "
            + "Note that the built-in numerical serdes do not follow this for negative numbers";

    /** Whether Streams is of a version that never calls {@code commit} with offsets. */
    private static final boolean LEGACY =
        Arrays.stream(StateStore.class.getMethods()).noneMatch(method -> method.getName().equals("committedOffset"));
    private static final Logger LOG = LoggerFactory.getLogger(LithifyStore.class);

    private final String name;
    private final Set<StoreIterator> iterators = ConcurrentHashMap.newKeySet();
    private volatile Position position = Position.emptyPosition();
    private StateStoreContext context;
    private TaskDatabase database;
    private CommitWatch watch;
    private TopicPartition changelog;
    private boolean transactional;
    private boolean exactlyOnce;
    private boolean global;
    private boolean consistencyEnabled;
    private volatile StoreRows rows;
    private volatile boolean open;

    LithifyStore(final String name) {
        this.name = name;
    }

    /** The format of keys and values on disk. */
    abstract String format();

    /** The key of a changelog record as it is stored; null if the record is not to be stored. */
    abstract byte[] storedKey(byte[] changelogKey);

    /** Called before records are restored, with all of them. */
    void beforeRestore(final Collection<ConsumerRecord<byte[], byte[]>> records) {
    }

    /** The ranges that expired while records were restored. */
    List<ByteRange> expiredByRestore() {
        return List.of();
    }

    /** Called when the rows are there, before anything is restored or written. */
    void opened() {
    }

    /** Whether writes since the last commit must not survive a crash. */
    boolean isTransactional() {
        return exactlyOnce && !LEGACY && !global;
    }

    /** Memory for writes since the last commit. */
    long uncommittedMaxBytes(final LithifyConfig config) {
        return config.uncommittedMaxBytes();
    }

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final boolean persistent() {
        return true;
    }

    @Override
    public final boolean isOpen() {
        return open;
    }

    @Override
    public final void init(final StateStoreContext storeContext, final StateStore root) {
        NativeLibrary.require();
        context = storeContext;
        global = storeContext instanceof InternalProcessorContext<?, ?> internal
            && internal.taskType() == TaskType.GLOBAL;
        exactlyOnce = StreamsConfig.EXACTLY_ONCE_V2.equals(
            storeContext.appConfigs().get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG));
        transactional = isTransactional();
        consistencyEnabled = StreamsConfig.InternalConfig.getBoolean(storeContext.appConfigs(),
            StreamsConfig.InternalConfig.IQ_CONSISTENCY_OFFSET_VECTOR_ENABLED, false);
        watch = new CommitWatch(storeContext.metrics());
        openRows(new LithifyConfig(storeContext.appConfigs()));
        StoreMetrics.register(storeContext, name, this);
        storeContext.register(root, (RecordBatchingStateRestoreCallback) this::restoreBatch);
    }

    /**
     * Opens the rows. Under exactly-once Streams removes the directory of a task that is reported corrupt; where it
     * would not, the damaged database goes aside and the store begins with an empty one.
     */
    private void openRows(final LithifyConfig config) {
        final boolean setAsideDamage = !exactlyOnce || global;
        try {
            openRows(config, setAsideDamage);
        } catch (final LithifyException damage) {
            if (!damage.isDamage() || !setAsideDamage) {
                final RuntimeException failure = failure("opening", damage);
                abandon();
                throw failure;
            }
            LOG.error("The state of store {} cannot be read and is restored from its changelog", name, damage);
            abandon();
            try {
                openRows(config, true);
            } catch (final LithifyException e) {
                final RuntimeException failure = failure("opening", e);
                abandon();
                throw failure;
            }
        }
    }

    private void openRows(final LithifyConfig config, final boolean setAsideDamage) {
        rows = null;
        database = TaskDatabase.acquire(context.stateDir().toPath(), name, config, setAsideDamage);
        try {
            rows = new StoreRows(database, name, format(), uncommittedMaxBytes(config), transactional);
            position = rows.metadata().position();
            open = true;
            opened();
        } catch (final LithifyException e) {
            if (e.isDamage() && setAsideDamage) {
                database.markDamaged();
            }
            throw e;
        }
    }

    private void abandon() {
        open = false;
        if (rows != null) {
            rows.close();
        }
        if (database != null) {
            database.release(name);
            database = null;
        }
    }

    @Override
    public final synchronized void close() {
        if (!open) {
            return;
        }
        open = false;
        iterators.forEach(StoreIterator::close);
        guarded("closing", () -> {
            try {
                rows.close();
            } finally {
                database.release(name);
            }
            return null;
        });
    }

    @Override
    @SuppressWarnings("deprecation")
    public final void flush() {
        // Called up to Kafka Streams 4.2 only, which keeps offsets itself.
        if (LEGACY && open) {
            commitRows(null);
        }
    }

    @Override
    public final void commit(final Map<TopicPartition, Long> changelogOffsets) {
        if (!open) {
            return;
        }
        if (changelogOffsets.size() == 1) {
            changelog = changelogOffsets.keySet().iterator().next();
        }
        commitRows(changelogOffsets);
    }

    @Override
    @SuppressWarnings("deprecation")
    public final boolean managesOffsets() {
        return true;
    }

    @Override
    public final Long committedOffset(final TopicPartition partition) {
        requireOpen();
        changelog = partition;
        return guarded("reading the committed offset of", () -> rows.metadata().offset(partition));
    }

    @Override
    public final Position getPosition() {
        return position;
    }

    @Override
    public <R> QueryResult<R> query(final Query<R> query, final PositionBound positionBound,
                                    final QueryConfig config) {
        return StoreQueryUtils.handleBasicQueries(query, positionBound, config, this, position, context);
    }

    /** The answer of stores whose values hold headers: the wrappers cannot read raw ones yet. */
    final <R> QueryResult<R> unknownQuery(final Query<R> query, final QueryConfig config) {
        final QueryResult<R> result = QueryResult.forUnknownQueryType(query, this);
        if (config.isCollectExecutionInfo()) {
            result.addExecutionInfo("Refused in " + getClass());
        }
        synchronized (position) {
            result.setPosition(position.copy());
        }
        return result;
    }

    final StateStoreContext context() {
        return context;
    }

    final StoreRows rows() {
        return rows;
    }

    final TaskDatabase database() {
        return database;
    }

    final void requireOpen() {
        if (!open) {
            throw new InvalidStateStoreException("Store " + name + " is currently closed");
        }
    }

    /** Writes a row, with the position of the record that caused it. A null value removes the row. */
    final void write(final byte[] key, final byte[] value) {
        commitIfTransactionWas();
        guarded("writing to", () -> {
            synchronized (position) {
                rows.put(key, value);
                StoreQueryUtils.updatePosition(position, context);
            }
            return null;
        });
    }

    /** Refuses a row that {@link #write} would refuse, before anything is written. */
    final void check(final byte[] key, final byte[] value) {
        guarded("writing to", () -> {
            rows.check(key, value);
            return null;
        });
    }

    final byte[] read(final byte[] key) {
        return guarded("reading from", () -> rows.get(key));
    }

    /** An iterator over the rows of ranges as they are now; the store closes it if nobody else does. */
    final StoreIterator iterator(final ByteRange range, final boolean forward) {
        final StoreIterator iterator = new StoreIterator(this, () -> rows.iterator(List.of(range), forward),
            key -> true, false, iterators::remove);
        guarded("opening an iterator of", iterator::open);
        iterators.add(iterator);
        return iterator;
    }

    /**
     * One over those rows of ranges whose keys {@code wanted} takes, as they are at its first call. The built-in
     * stores of windows and sessions open their segments as late.
     */
    final StoreIterator iterator(final List<ByteRange> ranges, final Predicate<byte[]> wanted,
                                 final boolean forward) {
        final StoreIterator iterator = new StoreIterator(this, () -> rows.iterator(ranges, forward), wanted, true,
            iterators::remove);
        iterators.add(iterator);
        return iterator;
    }

    final StoreIterator emptyAfterInvertedRange() {
        LOG.warn(INVERTED_RANGE);
        return StoreIterator.empty();
    }

    /** Runs a call of the engine, and turns its failure into what Streams acts on. */
    final <T> T guarded(final String action, final Supplier<T> call) {
        try {
            return call.get();
        } catch (final LithifyException e) {
            throw failure(action, e);
        }
    }

    final RuntimeException failure(final String action, final LithifyException e) {
        final String text = "Error while " + action + " store " + name + ": " + e.getMessage();
        if (e.code() == LithifyException.CLOSED) {
            return new InvalidStateStoreException("Store " + name + " is currently closed", e);
        }
        if (e.isDamage() && !global) {
            if (database != null && !exactlyOnce) {
                database.markDamaged();
            }
            final TaskCorruptedException corrupted = new TaskCorruptedException(Set.of(context.taskId()));
            corrupted.initCause(new ProcessorStateException(text, e));
            LOG.error(text, e);
            return corrupted;
        }
        return new ProcessorStateException(text, e);
    }

    private void commitRows(final Map<TopicPartition, Long> offsets) {
        guarded("committing", () -> {
            rows.commit(offsets, positionCopy());
            return null;
        });
    }

    /**
     * Under exactly-once: commits all writes so far if the transaction that carried them was committed. The record
     * collector then has the offset of the last record in the changelog: a store is written before its changelog.
     */
    private void commitIfTransactionWas() {
        if (!transactional || !watch.advanced() || rows.isClean()) {
            return;
        }
        if (changelog == null) {
            commitRows(null);
            return;
        }
        final Long offset = loggedOffset();
        if (offset != null) {
            commitRows(Map.of(changelog, offset));
        }
    }

    /** The offset of the changelog that the store stands for; null if it is not known. */
    private Long loggedOffset() {
        if (context instanceof RecordCollector.Supplier supplier && supplier.recordCollector() != null) {
            final Long sent = supplier.recordCollector().offsets().get(changelog);
            if (sent != null) {
                return sent;
            }
        }
        // A source topic that is its own changelog: the last record that was taken from it.
        synchronized (position) {
            return position.getPartitionPositions(changelog.topic()).get(changelog.partition());
        }
    }

    private Position positionCopy() {
        synchronized (position) {
            return position.copy();
        }
    }

    private void restoreBatch(final Collection<ConsumerRecord<byte[], byte[]>> records) {
        beforeRestore(records);
        final List<byte[]> keysAndValues = new ArrayList<>(2 * records.size());
        synchronized (position) {
            for (final ConsumerRecord<byte[], byte[]> record : records) {
                final byte[] key = storedKey(record.key());
                if (key != null) {
                    keysAndValues.add(key);
                    keysAndValues.add(record.value());
                    ChangelogRecordDeserializationHelper.applyChecksAndUpdatePosition(
                        record, consistencyEnabled, position);
                }
            }
        }
        guarded("restoring", () -> {
            rows.restore(keysAndValues, expiredByRestore());
            return null;
        });
    }
}

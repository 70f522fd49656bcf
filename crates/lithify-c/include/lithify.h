/*
 * lithify.h: Lithify's C interface.
 *
 * Codes.     Functions that can fail return an int: 0 is done, positive codes are answers that are no
 *            failures (LITHIFY_ABSENT, LITHIFY_SHORT), negative ones are failures. The last parameter of
 *            each is `char **message`. It may be NULL. A failure sets *message to a text that says what
 *            failed, where, and what to do; free it with lithify_free. Nothing else touches *message.
 *            After a failure the database is as it was before the call.
 *
 * Ownership. Every object that a function hands out has one function that frees it, named at its type.
 *            Freeing NULL is allowed. Objects may be freed in any order. An open cursor and a pinned value
 *            stay readable when their database is closed; calls that read or write rows or files answer
 *            LITHIFY_CLOSED then, transactions and ingests at their commit at the latest. A `char *` that
 *            a function hands out is memory of the C library: free it with lithify_free, which is free(3). What a
 *            function takes it copies; the caller keeps its own.
 *
 *            What a failed call would have handed out is as it was before.
 *
 * Paths.     A relative path is that of the time of the call: chdir(2) afterwards changes nothing.
 *
 * Bytes.     Keys and values are bytes with a length; they may hold zeros and may be empty. A pointer
 *            may be NULL if its length is 0. Texts (names, paths, options) are UTF-8, ended by a zero.
 *
 * Order.     Keys are ordered bytewise, as memcmp orders them; a prefix comes before what it begins.
 *
 * Threads.   lithify_db, lithify_family, lithify_snapshot and lithify_resources may be used by many
 *            threads at once. A cursor, batch, transaction or ingest is used by one thread at a time.
 *            Nothing may be freed while another thread uses it.
 *
 * fork.      A child process must not use what its parent opened. Calls answer LITHIFY_CLOSED there, and
 *            freeing does nothing.
 *
 * Signals.   No function may be called from a signal handler.
 */
#ifndef LITHIFY_H
#define LITHIFY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The interface that this header describes. It grows when a function or code changes its meaning. */
#define LITHIFY_INTERFACE 1

/* ---- Codes ------------------------------------------------------------------------------------ */

#define LITHIFY_OK 0
/* No such key, no such family, no further row, or no such wish: a condition was not met. */
#define LITHIFY_ABSENT 1
/* The buffer is too small; the size that it needs is in the length. Nothing was consumed. */
#define LITHIFY_SHORT 2

/* The call is wrong: change the arguments or the options. */
#define LITHIFY_INVALID_ARGUMENT (-1)
/* A key, value or batch is over a documented limit. */
#define LITHIFY_LIMIT_EXCEEDED (-2)
/* The path does not hold what was asked for. */
#define LITHIFY_NOT_FOUND (-3)
/* Something with that name exists already. */
#define LITHIFY_ALREADY_EXISTS (-4)
/* Stored bytes are not what was written: restore a copy, or repair. */
#define LITHIFY_CORRUPTION (-5)
/* A newer version wrote the file: upgrade. */
#define LITHIFY_UNSUPPORTED (-6)
/* The operating system refused or failed a call. */
#define LITHIFY_IO (-7)
/* The disk is full: free space; the database goes on without a restart. */
#define LITHIFY_NO_SPACE (-8)
/* Another process, or another handle of this one, has the database open. */
#define LITHIFY_LOCKED (-9)
/* A row lock was not granted in time: roll back and retry the transaction. */
#define LITHIFY_LOCK_TIMEOUT (-10)
/* Waiting would have closed a circle of waiting writers: roll back and retry. */
#define LITHIFY_DEADLOCK (-11)
/* The row changed after the transaction's snapshot: roll back and retry. */
#define LITHIFY_CONFLICT (-12)
/* The database, transaction or family is closed, dropped, or another process's. */
#define LITHIFY_CLOSED (-13)
/* The database was opened for reading only, or the system permits no writing there. */
#define LITHIFY_READ_ONLY (-14)
/* A failed sync left the state on disk unknown; nothing is written any more: reopen. */
#define LITHIFY_POISONED (-15)
/* What was to be read changed faster than it could be read: call again. */
#define LITHIFY_TRY_AGAIN (-16)
/* The caller stopped it before its end. */
#define LITHIFY_CANCELLED (-17)
/* The merge operator is not there, or refused the operands of a row. */
#define LITHIFY_MERGE (-18)
/* A compaction filter failed. */
#define LITHIFY_COMPACTION_FILTER (-19)
/* A defect of the library, caught at this border: report it with its text. */
#define LITHIFY_INTERNAL (-100)

/* "invalid argument", "corruption", ...: the name of a code, a constant text. Never NULL. */
const char *lithify_code_name(int code);
/* 1 if the same work may succeed when it is simply tried again, from the transaction's start. */
int lithify_code_is_retryable(int code);

/* ---- The library ------------------------------------------------------------------------------ */

/* "0.1.0": a constant text. */
const char *lithify_version(void);
/* LITHIFY_INTERFACE of the library that was loaded. Compare it with the header's before anything else. */
int lithify_interface(void);
/* Frees what the library allocated for the caller; NULL is allowed. It is free(3). */
void lithify_free(void *memory);

/* ---- Types ------------------------------------------------------------------------------------ */

typedef struct lithify_options lithify_options;               /* lithify_options_free */
typedef struct lithify_family_options lithify_family_options; /* lithify_family_options_free */
typedef struct lithify_resources lithify_resources;           /* lithify_resources_free */
typedef struct lithify_db lithify_db;                         /* lithify_db_free */
typedef struct lithify_family lithify_family;                 /* lithify_family_free */
typedef struct lithify_snapshot lithify_snapshot;             /* lithify_snapshot_free */
typedef struct lithify_pinned lithify_pinned;                 /* lithify_pinned_free */
typedef struct lithify_batch lithify_batch;                   /* lithify_batch_free */
typedef struct lithify_cursor lithify_cursor;                 /* lithify_cursor_free */
typedef struct lithify_transaction lithify_transaction;       /* lithify_transaction_free */
typedef struct lithify_ingest lithify_ingest;                 /* lithify_ingest_free */

/* When a commit is acknowledged. */
#define LITHIFY_DURABILITY_DEFAULT 0  /* as the database was opened */
#define LITHIFY_DURABILITY_BUFFERED 1 /* survives this process, not a power cut */
#define LITHIFY_DURABILITY_SYNC 2     /* survives a power cut, with everything before it */

/* ---- Options: by name and as text ------------------------------------------------------------- */

lithify_options *lithify_options_new(void);
void lithify_options_free(lithify_options *options);
/* One setting, `value` as in docs/options.md: "64MiB", "true", "sync". */
int lithify_options_set(lithify_options *options, const char *name, const char *value, char **message);
/* Several, separated by blanks: "memory_budget_bytes=64MiB durability=sync". All or none are set. */
int lithify_options_parse(lithify_options *options, const char *text, char **message);
/* All settings as text, that lithify_options_parse reads. */
int lithify_options_text(const lithify_options *options, char **text, char **message);

lithify_family_options *lithify_family_options_new(void);
void lithify_family_options_free(lithify_family_options *options);
int lithify_family_options_set(lithify_family_options *options, const char *name, const char *value,
                               char **message);
int lithify_family_options_parse(lithify_family_options *options, const char *text, char **message);
int lithify_family_options_text(const lithify_family_options *options, char **text, char **message);

/* ---- Databases -------------------------------------------------------------------------------- */

/* Opens a database. `options` may be NULL for the defaults, `resources` NULL for memory and threads of
 * its own. */
int lithify_open(const char *path, const lithify_options *options, const lithify_resources *resources,
                 lithify_db **db, char **message);
/* Opens one for reading, also while another process writes it. */
int lithify_open_read_only(const char *path, const lithify_options *options, lithify_db **db,
                           char **message);
/* Moves a reader on to the present state of the directory. Families and cursors of the state before
 * stay readable and show that state; take new families. No other call may run on this handle. */
int lithify_refresh(lithify_db *db, char **message);
/* Closes the database: whatever else still refers to it answers LITHIFY_CLOSED from now on. Does nothing
 * the second time. The handle stays to be freed. */
int lithify_close(lithify_db *db, char **message);
/* Frees the handle. Closes the database first if that was not done; a failure of that is lost. */
void lithify_db_free(lithify_db *db);

/* Memory and background threads that several databases of a process share. */
int lithify_resources_new(size_t memory_budget_bytes, size_t background_threads,
                          lithify_resources **resources, char **message);
size_t lithify_resources_used_bytes(const lithify_resources *resources);
void lithify_resources_free(lithify_resources *resources);

/* Makes all logged writes durable. */
int lithify_sync(lithify_db *db, char **message);
/* Writes all memtables to tables. */
int lithify_flush(lithify_db *db, char **message);
/* Waits until nothing is left to flush or compact. */
int lithify_wait_for_compaction(lithify_db *db, char **message);
/* A database of its own at `path`, which must not be there; tables are linked, not copied. */
int lithify_checkpoint(lithify_db *db, const char *path, char **message);

/* Adds a backup to the store at `store`, which is made if it is not there. `note` may be NULL, `id` too. */
int lithify_backup(lithify_db *db, const char *store, const char *note, uint64_t *id, char **message);
/* The backups of a store, as JSON: [{"id":…,"unix_time_s":…,"files":…,"bytes":…,"note":…}, …]. */
int lithify_backup_list(const char *store, char **json, char **message);
/* Removes all backups but the newest `keep`. LITHIFY_NOT_FOUND if there is no store. */
int lithify_backup_purge(const char *store, size_t keep, char **message);
/* Restores a backup, the newest if `id` is 0, to `path`, which must not be there. */
int lithify_restore(const char *store, uint64_t id, const char *path, char **message);

/* Reads everything and checks it. LITHIFY_CORRUPTION if something is damaged; *report (may be NULL) says
 * what was checked and found either way. */
int lithify_verify(const char *path, char **report, char **message);
/* Saves what can be saved of a damaged database into `target`, which must not be there. The source is
 * not changed. *report (may be NULL) says what was saved and lost. */
int lithify_repair(const char *path, const char *target, char **report, char **message);

/* Removes the database in a directory, and the directory if nothing else is in it. LITHIFY_LOCKED while
 * somebody has it open. */
int lithify_destroy(const char *path, char **message);

/* ---- Statistics ------------------------------------------------------------------------------- */

/* Figures of docs/stats.md. The text of each is ended by a zero. */
int lithify_stats_text(lithify_db *db, char **text, char **message);
int lithify_stats_json(lithify_db *db, char **json, char **message);
int lithify_stats_prometheus(lithify_db *db, char **text, char **message);
int lithify_stats_open_metrics(lithify_db *db, char **text, char **message);
/* Which compression each level has, and why. */
int lithify_explain_text(lithify_family *family, char **text, char **message);
int lithify_explain_json(lithify_family *family, char **json, char **message);
/* About how many bytes on disk, and rows, keys from `start` on and before `end` take. NULL is an open end.
 * Memtables count as nothing, but their rows do where both ends are open. `bytes` or `rows` may be NULL. */
int lithify_approximate(lithify_family *family, const void *start, size_t start_length, const void *end,
                        size_t end_length, uint64_t *bytes, uint64_t *rows, char **message);

/* ---- Column families -------------------------------------------------------------------------- */

/* The family `default`: made at the first write, never by reading. */
int lithify_default_family(lithify_db *db, lithify_family **family, char **message);
/* The family of that name, made if there is none. With `options` NULL an existing one keeps its own. */
int lithify_family_open(lithify_db *db, const char *name, const lithify_family_options *options,
                        lithify_family **family, char **message);
/* The family of that name; LITHIFY_ABSENT if there is none. */
int lithify_family_existing(lithify_db *db, const char *name, lithify_family **family, char **message);
/* The names of all families, each ended by a zero, one behind the other. */
int lithify_family_names(lithify_db *db, char **names, size_t *count, char **message);
/* Drops a family with everything in it. */
int lithify_family_drop(lithify_db *db, const char *name, char **message);
void lithify_family_free(lithify_family *family);
/* The options that it has, as text. */
int lithify_family_text(lithify_family *family, char **text, char **message);
/* Writes its memtable to tables. */
int lithify_family_flush(lithify_family *family, char **message);
/* Compacts the keys from `start` to `end`; NULL is an open end. */
int lithify_compact_range(lithify_family *family, const void *start, size_t start_length,
                          const void *end, size_t end_length, char **message);

/* ---- Writing ---------------------------------------------------------------------------------- */

int lithify_put(lithify_family *family, const void *key, size_t key_length, const void *value,
                size_t value_length, char **message);
int lithify_delete(lithify_family *family, const void *key, size_t key_length, char **message);
/* Removes a key that was put at most once since it was last removed. */
int lithify_single_delete(lithify_family *family, const void *key, size_t key_length, char **message);
/* Removes the keys from `start` on and before `end`. */
int lithify_delete_range(lithify_family *family, const void *start, size_t start_length,
                         const void *end, size_t end_length, char **message);
/* Adds an operand for the family's merge operator. */
int lithify_merge(lithify_family *family, const void *key, size_t key_length, const void *operand,
                  size_t operand_length, char **message);
/* Writes a row if its key is absent; LITHIFY_ABSENT if there was one, which stays. */
int lithify_put_if_absent(lithify_family *family, const void *key, size_t key_length,
                          const void *value, size_t value_length, char **message);
/* Writes a row if its value is `expected`; LITHIFY_ABSENT if it is not. */
int lithify_compare_and_put(lithify_family *family, const void *key, size_t key_length,
                            const void *expected, size_t expected_length, const void *value,
                            size_t value_length, char **message);

/* A batch: writes that become visible together or not at all. */
lithify_batch *lithify_batch_new(void);
void lithify_batch_free(lithify_batch *batch);
int lithify_batch_put(lithify_batch *batch, lithify_family *family, const void *key, size_t key_length,
                      const void *value, size_t value_length, char **message);
int lithify_batch_delete(lithify_batch *batch, lithify_family *family, const void *key,
                         size_t key_length, char **message);
int lithify_batch_single_delete(lithify_batch *batch, lithify_family *family, const void *key,
                                size_t key_length, char **message);
int lithify_batch_delete_range(lithify_batch *batch, lithify_family *family, const void *start,
                               size_t start_length, const void *end, size_t end_length, char **message);
int lithify_batch_merge(lithify_batch *batch, lithify_family *family, const void *key,
                        size_t key_length, const void *operand, size_t operand_length, char **message);
/* Many writes to one family by one call: `rows` is `length` bytes of rows, see "Rows in a buffer"
 * below. All of them are taken, or none. */
int lithify_batch_rows(lithify_batch *batch, lithify_family *family, const void *rows, size_t length,
                       char **message);
size_t lithify_batch_count(const lithify_batch *batch);
/* About the bytes that it will take of the log. */
size_t lithify_batch_size_bytes(const lithify_batch *batch);
void lithify_batch_clear(lithify_batch *batch);
/* Writes everything. The batch stays as it is: clear it to fill it anew. */
int lithify_batch_commit(lithify_db *db, const lithify_batch *batch, int durability, char **message);

/*
 * Rows in a buffer. A row is
 *     uint32_t key_length; uint32_t value_length; key; value
 * in the byte order of this machine, without padding. A value_length of UINT32_MAX is a removal: it has
 * no value.
 */
#define LITHIFY_REMOVAL UINT32_MAX

/* ---- Reading ---------------------------------------------------------------------------------- */

lithify_snapshot *lithify_snapshot_new(lithify_db *db, char **message);
uint64_t lithify_snapshot_sequence(const lithify_snapshot *snapshot);
void lithify_snapshot_free(lithify_snapshot *snapshot);

/* In all of these `snapshot` may be NULL for the present. LITHIFY_ABSENT: there is no such key. */

/* A copy of the value: free it with lithify_free. Never NULL when LITHIFY_OK. */
int lithify_get(lithify_family *family, const lithify_snapshot *snapshot, const void *key,
                size_t key_length, char **value, size_t *value_length, char **message);
/* Copies the value into `buffer`. LITHIFY_SHORT if it is larger than `capacity`; its size is in
 * *value_length either way. */
int lithify_get_into(lithify_family *family, const lithify_snapshot *snapshot, const void *key,
                     size_t key_length, void *buffer, size_t capacity, size_t *value_length,
                     char **message);
/* The value where the engine has it, without a copy. It keeps its block in memory until it is freed. *pinned is
 * NULL where there is none. */
int lithify_get_pinned(lithify_family *family, const lithify_snapshot *snapshot, const void *key,
                       size_t key_length, lithify_pinned **pinned, char **message);
/* Its bytes, valid until it is freed. */
const void *lithify_pinned_value(const lithify_pinned *pinned, size_t *value_length);
void lithify_pinned_free(lithify_pinned *pinned);
/* LITHIFY_OK if there is such a key. */
int lithify_contains(lithify_family *family, const lithify_snapshot *snapshot, const void *key,
                     size_t key_length, char **message);
/* Many keys by one call. pinned[i] is NULL where keys[i] is absent; free the others. After a failure all
 * are NULL. */
int lithify_multi_get(lithify_family *family, const lithify_snapshot *snapshot, size_t count,
                      const void *const *keys, const size_t *key_lengths, lithify_pinned **pinned,
                      char **message);

/* ---- Cursors ---------------------------------------------------------------------------------- */

/* Bounds: without flags, `start` belongs to the range and `end` does not. */
#define LITHIFY_START_EXCLUDED 1
#define LITHIFY_END_INCLUDED 2

/* A cursor over a consistent state: `snapshot`, or the moment of this call. NULL is an open end. It stands
 * before the first row. */
int lithify_cursor_open(lithify_family *family, const lithify_snapshot *snapshot, const void *start,
                        size_t start_length, const void *end, size_t end_length, int flags,
                        lithify_cursor **cursor, char **message);
/* One over the keys that begin with `prefix`. */
int lithify_cursor_prefix(lithify_family *family, const lithify_snapshot *snapshot, const void *prefix,
                          size_t prefix_length, lithify_cursor **cursor, char **message);
void lithify_cursor_free(lithify_cursor *cursor);

/* Moves; LITHIFY_OK if it stands on a row then, LITHIFY_ABSENT if there is none. After a failure it stands
 * nowhere. Past the last row, lithify_cursor_prev goes to the last one, and the other way round. */
int lithify_cursor_first(lithify_cursor *cursor, char **message);
int lithify_cursor_last(lithify_cursor *cursor, char **message);
int lithify_cursor_next(lithify_cursor *cursor, char **message);
int lithify_cursor_prev(lithify_cursor *cursor, char **message);
/* The first row at or after `key`. */
int lithify_cursor_seek(lithify_cursor *cursor, const void *key, size_t key_length, char **message);
/* The last row at or before `key`. */
int lithify_cursor_seek_for_prev(lithify_cursor *cursor, const void *key, size_t key_length,
                                 char **message);
/* 1 if it stands on a row. */
int lithify_cursor_valid(const lithify_cursor *cursor);
/* Bytes of the row that it stands on, lent until it moves; NULL and 0 if it stands nowhere. */
const void *lithify_cursor_key(const lithify_cursor *cursor, size_t *key_length);
const void *lithify_cursor_value(const lithify_cursor *cursor, size_t *value_length);

#define LITHIFY_FORWARD 0
#define LITHIFY_BACKWARD 1
#define LITHIFY_KEYS_ONLY 2 /* with either: rows have empty values */

/*
 * Many rows by one call: moves on from where the cursor stands, and copies each row into `buffer`, up to
 * `rows_max` of them and as many as fit ("Rows in a buffer"). *used is the bytes, *rows their number.
 *   LITHIFY_OK      there may be more
 *   LITHIFY_ABSENT  these were the last ones; *rows may be 0
 *   LITHIFY_SHORT   the next row alone is larger than `capacity`: *used is what it takes
 * A row that did not fit comes with the next call of the same direction. lithify_cursor_next and
 * lithify_cursor_prev go on from the last row that was copied, and so does a fill the other way. Which row the
 * cursor lends after a fill is not said.
 */
int lithify_cursor_fill(lithify_cursor *cursor, int direction, size_t rows_max, void *buffer,
                        size_t capacity, size_t *used, size_t *rows, char **message);

/* ---- Transactions ----------------------------------------------------------------------------- */

#define LITHIFY_PESSIMISTIC 0 /* takes row locks as it goes */
#define LITHIFY_OPTIMISTIC 1  /* takes none, and is checked by its commit */

int lithify_transaction_begin(lithify_db *db, int kind, lithify_transaction **transaction,
                              char **message);
/* Rolls back what was not committed. */
void lithify_transaction_free(lithify_transaction *transaction);
/* How long it waits for a row lock; 0 gives up at once. */
int lithify_transaction_set_lock_timeout_ms(lithify_transaction *transaction, uint64_t milliseconds,
                                            char **message);
/* Locking a row that somebody changes after this call is refused with LITHIFY_CONFLICT. */
int lithify_transaction_set_snapshot(lithify_transaction *transaction, char **message);
/* Every read sees the state of this moment, with the transaction's own writes on top. */
int lithify_transaction_read_at_snapshot(lithify_transaction *transaction, char **message);

int lithify_transaction_get(lithify_transaction *transaction, lithify_family *family, const void *key,
                            size_t key_length, char **value, size_t *value_length, char **message);
/* Locks the row first, also if it is absent. */
int lithify_transaction_get_for_update(lithify_transaction *transaction, lithify_family *family,
                                       const void *key, size_t key_length, char **value,
                                       size_t *value_length, char **message);
int lithify_transaction_put(lithify_transaction *transaction, lithify_family *family, const void *key,
                            size_t key_length, const void *value, size_t value_length, char **message);
/* A range cannot be locked: a transaction deletes key by key. */
int lithify_transaction_delete(lithify_transaction *transaction, lithify_family *family,
                               const void *key, size_t key_length, char **message);
int lithify_transaction_single_delete(lithify_transaction *transaction, lithify_family *family,
                                      const void *key, size_t key_length, char **message);
int lithify_transaction_merge(lithify_transaction *transaction, lithify_family *family,
                              const void *key, size_t key_length, const void *operand,
                              size_t operand_length, char **message);
/* Rows as of this call, with the transaction's own writes up to it. */
int lithify_transaction_cursor(lithify_transaction *transaction, lithify_family *family,
                               const void *start, size_t start_length, const void *end,
                               size_t end_length, int flags, lithify_cursor **cursor, char **message);
int lithify_transaction_set_savepoint(lithify_transaction *transaction, char **message);
int lithify_transaction_rollback_to_savepoint(lithify_transaction *transaction, char **message);
/* Commit and rollback end it: what is called afterwards answers LITHIFY_CLOSED. A commit that fails has
 * written nothing. */
int lithify_transaction_commit(lithify_transaction *transaction, int durability, char **message);
int lithify_transaction_rollback(lithify_transaction *transaction, char **message);

/* ---- Ingest: rows in ascending order of keys, straight into tables, past the log ---------------- */

int lithify_ingest_begin(lithify_family *family, lithify_ingest **ingest, char **message);
/* Gives up what was not committed. */
void lithify_ingest_free(lithify_ingest *ingest);
int lithify_ingest_put(lithify_ingest *ingest, const void *key, size_t key_length, const void *value,
                       size_t value_length, char **message);
int lithify_ingest_delete(lithify_ingest *ingest, const void *key, size_t key_length, char **message);
/* "Rows in a buffer". Rows before a bad one are taken. */
int lithify_ingest_rows(lithify_ingest *ingest, const void *rows, size_t length, char **message);
/* Makes all rows visible at once, and durable. Ends it. *rows (may be NULL) is their number. */
int lithify_ingest_commit(lithify_ingest *ingest, uint64_t *rows, char **message);

#ifdef __cplusplus
}
#endif

#endif /* LITHIFY_H */

/*
 * leveldb/c.h: the C interface of LevelDB 1.23, as Lithify gives it.
 *
 * A program that was written for LevelDB is compiled with this header, or its own copy of LevelDB's, and
 * linked with liblithify_leveldb. The page of this library, README.md, has what is the same and what is
 * not; the points to know are:
 *
 *   Order.      Keys are ordered bytewise, as memcmp orders them. A comparator of another name works as
 *               long as it agrees with that. The first write or seek that would show a difference fails
 *               with "Not implemented: comparator ... does not order bytewise". So a reverse order, or one
 *               that takes different keys for equal, cannot be had.
 *   Files.      The files are Lithify's. A directory of LevelDB is refused and left as it is:
 *               `lithify import NEW_DIRECTORY OLD_DIRECTORY --create` makes a copy that opens.
 *   Limits.     A key has at most 65,535 bytes, a value at most 64 MiB. A batch is at most half of the
 *               memory budget (256 MiB, and the cache) in bytes.
 *   Failures.   `char **errptr` is the last parameter of what can fail. Begin with NULL in it. A failure
 *               puts a text there, in place of the one that is there, which it frees. Success leaves it.
 *               Texts begin with "NotFound: ", "Corruption: ", "Not implemented: ",
 *               "Invalid argument: " or "IO error: ".
 *   Memory.     What is said to be the caller's is of malloc: give it to leveldb_free, or to free.
 *   Threads.    A leveldb_t may be used by many threads at once. An iterator or batch is used by one
 *               thread at a time.
 *   fork.       A child may not use what its parent opened. Calls fail there; ending it does nothing.
 *   Booleans.   0 is false, anything else true.
 */
#ifndef LITHIFY_LEVELDB_C_H
#define LITHIFY_LEVELDB_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects are known by pointers alone. */
typedef struct leveldb_t leveldb_t;
typedef struct leveldb_iterator_t leveldb_iterator_t;
typedef struct leveldb_snapshot_t leveldb_snapshot_t;
typedef struct leveldb_writebatch_t leveldb_writebatch_t;
typedef struct leveldb_options_t leveldb_options_t;
typedef struct leveldb_readoptions_t leveldb_readoptions_t;
typedef struct leveldb_writeoptions_t leveldb_writeoptions_t;
typedef struct leveldb_cache_t leveldb_cache_t;
typedef struct leveldb_comparator_t leveldb_comparator_t;
typedef struct leveldb_filterpolicy_t leveldb_filterpolicy_t;
typedef struct leveldb_env_t leveldb_env_t;
/* For the types of LevelDB's header; no function makes any of them. */
typedef struct leveldb_logger_t leveldb_logger_t;
typedef struct leveldb_filelock_t leveldb_filelock_t;
typedef struct leveldb_randomfile_t leveldb_randomfile_t;
typedef struct leveldb_seqfile_t leveldb_seqfile_t;
typedef struct leveldb_writablefile_t leveldb_writablefile_t;

/* ---- The library -------------------------------------------------------------------------------- */

/* 1 and 23: the version of LevelDB whose interface this is. */
int leveldb_major_version(void);
int leveldb_minor_version(void);
/* The version of Lithify: a text that is never freed. LevelDB has no such function. */
const char* lithify_leveldb_version(void);
/* Frees what is the caller's; NULL is allowed. */
void leveldb_free(void* ptr);

/* ---- Options of a database ---------------------------------------------------------------------- */

/* What is not set is as the database has it already, or else as Lithify has it. Options may end once the
 * database is open; comparators, filter policies, caches and environments that they name may not. */
leveldb_options_t* leveldb_options_create(void);
void leveldb_options_destroy(leveldb_options_t* options);

/* Not there: make it. Default: no. */
void leveldb_options_set_create_if_missing(leveldb_options_t* options, uint8_t value);
/* There: refuse it. Default: no. */
void leveldb_options_set_error_if_exists(leveldb_options_t* options, uint8_t value);
/* NULL is the bytewise one. */
void leveldb_options_set_comparator(leveldb_options_t* options, leveldb_comparator_t* comparator);
/* NULL leaves it to Lithify, which has filters of its own. */
void leveldb_options_set_filter_policy(leveldb_options_t* options, leveldb_filterpolicy_t* policy);
/* Bytes of a memtable, 64 KiB to 1 GiB. */
void leveldb_options_set_write_buffer_size(leveldb_options_t* options, size_t bytes);
/* Memory for blocks, beside what Lithify uses anyway. */
void leveldb_options_set_cache(leveldb_options_t* options, leveldb_cache_t* cache);
/* Bytes of a data block before compression, 1 KiB to 4 MiB. */
void leveldb_options_set_block_size(leveldb_options_t* options, size_t bytes);
/* Bytes at which tables are cut, 1 MiB to 1 GiB. */
void leveldb_options_set_max_file_size(leveldb_options_t* options, size_t bytes);

enum { leveldb_no_compression = 0, leveldb_snappy_compression = 1 };
/* Snappy stands for compression as such: Lithify chooses the codec. */
void leveldb_options_set_compression(leveldb_options_t* options, int compression);

/* Taken without effect, and listed by the property "lithify.options" where they are numbers. */
void leveldb_options_set_paranoid_checks(leveldb_options_t* options, uint8_t value);
void leveldb_options_set_max_open_files(leveldb_options_t* options, int count);
void leveldb_options_set_block_restart_interval(leveldb_options_t* options, int count);
void leveldb_options_set_env(leveldb_options_t* options, leveldb_env_t* env);
void leveldb_options_set_info_log(leveldb_options_t* options, leveldb_logger_t* logger);

/* ---- What options name -------------------------------------------------------------------------- */

/* `compare` answers below, at or above 0. `destructor` is called once, by the destroy function.
 * Callbacks may come from any thread. NULL for a missing function. */
leveldb_comparator_t* leveldb_comparator_create(
    void* state, void (*destructor)(void* state),
    int (*compare)(void* state, const char* a, size_t a_length, const char* b, size_t b_length),
    const char* (*name)(void* state));
void leveldb_comparator_destroy(leveldb_comparator_t* comparator);

/* Lithify's own filter, with so many bits a key. */
leveldb_filterpolicy_t* leveldb_filterpolicy_create_bloom(int bits_per_key);
/* Asked by each get, with a filter of that one key. `create_filter` answers memory of malloc, which the
 * library frees. What `key_may_match` denies is not found. */
leveldb_filterpolicy_t* leveldb_filterpolicy_create(
    void* state, void (*destructor)(void* state),
    char* (*create_filter)(void* state, const char* const* keys, const size_t* key_lengths,
                           int key_count, size_t* filter_length),
    uint8_t (*key_may_match)(void* state, const char* key, size_t key_length, const char* filter,
                             size_t filter_length),
    const char* (*name)(void* state));
void leveldb_filterpolicy_destroy(leveldb_filterpolicy_t* policy);

/* So many bytes. Each database that names it has as many: they share none. */
leveldb_cache_t* leveldb_cache_create_lru(size_t bytes);
void leveldb_cache_destroy(leveldb_cache_t* cache);

leveldb_env_t* leveldb_create_default_env(void);
void leveldb_env_destroy(leveldb_env_t* env);
/* $TEST_TMPDIR, or a directory in /tmp, which is there afterwards; the caller's. NULL if it cannot be
 * made. */
char* leveldb_env_get_test_directory(leveldb_env_t* env);

/* ---- Databases ---------------------------------------------------------------------------------- */

/* NULL with a failure. */
leveldb_t* leveldb_open(const leveldb_options_t* options, const char* name, char** errptr);
/* End iterators and snapshots before. */
void leveldb_close(leveldb_t* db);
/* Removes a database, and its directory if nothing else is in it. Nothing there is no failure. */
void leveldb_destroy_db(const leveldb_options_t* options, const char* name, char** errptr);
/* Puts what can be saved of a damaged database into its place. What was there stays beside it, as
 * NAME.damaged-N, if something of it is lost. */
void leveldb_repair_db(const leveldb_options_t* options, const char* name, char** errptr);

/* ---- Writes ------------------------------------------------------------------------------------- */

leveldb_writeoptions_t* leveldb_writeoptions_create(void);
void leveldb_writeoptions_destroy(leveldb_writeoptions_t* options);
/* Durable before it is acknowledged. Without it a write survives the process, not the machine. */
void leveldb_writeoptions_set_sync(leveldb_writeoptions_t* options, uint8_t value);

void leveldb_put(leveldb_t* db, const leveldb_writeoptions_t* options, const char* key,
                 size_t key_length, const char* value, size_t value_length, char** errptr);
/* The key need not be there. */
void leveldb_delete(leveldb_t* db, const leveldb_writeoptions_t* options, const char* key,
                    size_t key_length, char** errptr);
/* All writes of a batch, or none. The batch stays as it is and may be used again. */
void leveldb_write(leveldb_t* db, const leveldb_writeoptions_t* options, leveldb_writebatch_t* batch,
                   char** errptr);

leveldb_writebatch_t* leveldb_writebatch_create(void);
void leveldb_writebatch_destroy(leveldb_writebatch_t* batch);
void leveldb_writebatch_clear(leveldb_writebatch_t* batch);
/* Keys and values are copied. Of two writes of one key the later one counts. */
void leveldb_writebatch_put(leveldb_writebatch_t* batch, const char* key, size_t key_length,
                            const char* value, size_t value_length);
void leveldb_writebatch_delete(leveldb_writebatch_t* batch, const char* key, size_t key_length);
/* Copies of the writes of `source` behind those of `destination`. */
void leveldb_writebatch_append(leveldb_writebatch_t* destination, const leveldb_writebatch_t* source);
/* Calls back for each write, in the order of their insertion. */
void leveldb_writebatch_iterate(const leveldb_writebatch_t* batch, void* state,
                                void (*put)(void* state, const char* key, size_t key_length,
                                            const char* value, size_t value_length),
                                void (*deleted)(void* state, const char* key, size_t key_length));

/* ---- Reads -------------------------------------------------------------------------------------- */

leveldb_readoptions_t* leveldb_readoptions_create(void);
void leveldb_readoptions_destroy(leveldb_readoptions_t* options);
/* NULL is the present. */
void leveldb_readoptions_set_snapshot(leveldb_readoptions_t* options,
                                      const leveldb_snapshot_t* snapshot);
/* Without effect: everything is verified, and scans do not push out what others read. */
void leveldb_readoptions_set_verify_checksums(leveldb_readoptions_t* options, uint8_t value);
void leveldb_readoptions_set_fill_cache(leveldb_readoptions_t* options, uint8_t value);

const leveldb_snapshot_t* leveldb_create_snapshot(leveldb_t* db);
void leveldb_release_snapshot(leveldb_t* db, const leveldb_snapshot_t* snapshot);

/* A copy of the value, the caller's, and its length in *value_length. NULL, a length of 0 and no failure
 * if the key is not there. */
char* leveldb_get(leveldb_t* db, const leveldb_readoptions_t* options, const char* key,
                  size_t key_length, size_t* value_length, char** errptr);

/* Over the rows of now, or of the options' snapshot. It stands nowhere until it is placed. */
leveldb_iterator_t* leveldb_create_iterator(leveldb_t* db, const leveldb_readoptions_t* options);
void leveldb_iter_destroy(leveldb_iterator_t* iterator);
/* Whether it stands on a row. */
uint8_t leveldb_iter_valid(const leveldb_iterator_t* iterator);
void leveldb_iter_seek_to_first(leveldb_iterator_t* iterator);
void leveldb_iter_seek_to_last(leveldb_iterator_t* iterator);
/* To the first row at or behind the key. */
void leveldb_iter_seek(leveldb_iterator_t* iterator, const char* key, size_t key_length);
/* From nowhere they do nothing. */
void leveldb_iter_next(leveldb_iterator_t* iterator);
void leveldb_iter_prev(leveldb_iterator_t* iterator);
/* Lent until the next move; empty if it stands nowhere. */
const char* leveldb_iter_key(const leveldb_iterator_t* iterator, size_t* key_length);
const char* leveldb_iter_value(const leveldb_iterator_t* iterator, size_t* value_length);
/* The failure that left it nowhere, if there was one. */
void leveldb_iter_get_error(const leveldb_iterator_t* iterator, char** errptr);

/* ---- Figures and work --------------------------------------------------------------------------- */

/* A text, the caller's; NULL for an unknown name. Names: "leveldb.num-files-at-level<N>",
 * "leveldb.stats", "leveldb.sstables", "leveldb.approximate-memory-usage", and Lithify's own
 * "lithify.stats", "lithify.stats-json" and "lithify.options". */
char* leveldb_property_value(leveldb_t* db, const char* name);
/* Bytes of files that each range takes, about, its limit not included. What is not in a table yet takes
 * nothing. All arrays have `count` entries. */
void leveldb_approximate_sizes(leveldb_t* db, int count, const char* const* starts,
                               const size_t* start_lengths, const char* const* limits,
                               const size_t* limit_lengths, uint64_t* sizes);
/* From `start` to `limit`, both included; NULL is an open end. */
void leveldb_compact_range(leveldb_t* db, const char* start, size_t start_length, const char* limit,
                           size_t limit_length);

#ifdef __cplusplus
}
#endif

#endif /* LITHIFY_LEVELDB_C_H */

/* Calls every function of the header as it is meant to be called. argv[1]: an empty directory. */
#include "check.h"

#include <unistd.h>

static lithify_db *db;
static lithify_family *rocks;
static char path[4096], copy[4096], store[4096], restored[4096], repaired[4096];

static void library(void) {
    CHECK(strcmp(lithify_version(), "0.1.0") == 0);
    CHECK(lithify_interface() == LITHIFY_INTERFACE);
    CHECK(strcmp(lithify_code_name(LITHIFY_OK), "ok") == 0);
    CHECK(strcmp(lithify_code_name(LITHIFY_NO_SPACE), "no space") == 0);
    CHECK(strcmp(lithify_code_name(12345), "unknown") == 0);
    CHECK(lithify_code_is_retryable(LITHIFY_CONFLICT) == 1);
    CHECK(lithify_code_is_retryable(LITHIFY_CORRUPTION) == 0);
    lithify_free(NULL);
}

static void options(void) {
    char *text = NULL;
    lithify_options *options = lithify_options_new();
    lithify_family_options *family = lithify_family_options_new();
    DONE(lithify_options_set(options, "memory_budget_bytes", "32MiB", &message));
    DONE(lithify_options_parse(options, "memtable_bytes=1MiB background_threads=1", &message));
    DONE(lithify_options_text(options, &text, &message));
    CHECK(strstr(text, "memory_budget_bytes=33554432 memtable_bytes=1048576") != NULL);
    lithify_free(text);
    DONE(lithify_open(path, options, NULL, &db, &message));
    DONE(lithify_family_options_set(family, "compression", "lz4", &message));
    DONE(lithify_family_options_parse(family, "merge_operator=append", &message));
    DONE(lithify_family_options_text(family, &text, &message));
    CHECK(strstr(text, "merge_operator=append") != NULL);
    lithify_free(text);
    DONE(lithify_family_open(db, "rocks", family, &rocks, &message));
    DONE(lithify_family_text(rocks, &text, &message));
    CHECK(strstr(text, "compression=lz4") != NULL);
    lithify_free(text);
    lithify_options_free(options);
    lithify_family_options_free(family);
}

static void families(void) {
    lithify_family *other = NULL;
    char *names = NULL;
    size_t count = 0;
    ANSWERS(LITHIFY_ABSENT, lithify_family_existing(db, "other", &other, &message));
    DONE(lithify_family_open(db, "other", NULL, &other, &message));
    lithify_family_free(other);
    DONE(lithify_family_existing(db, "other", &other, &message));
    lithify_family_free(other);
    DONE(lithify_family_names(db, &names, &count, &message));
    CHECK(count == 2 && strcmp(names, "rocks") == 0 && strcmp(names + 6, "other") == 0);
    lithify_free(names);
    DONE(lithify_family_drop(db, "other", &message));
    DONE(lithify_default_family(db, &other, &message));
    DONE(lithify_put(other, "a", 1, "1", 1, &message));
    lithify_family_free(other);
}

static void writes(void) {
    DONE(lithify_put(rocks, "basalt", 6, "igneous", 7, &message));
    DONE(lithify_put(rocks, "chalk", 5, NULL, 0, &message));
    DONE(lithify_put(rocks, "once", 4, "x", 1, &message));
    DONE(lithify_single_delete(rocks, "once", 4, &message));
    DONE(lithify_put(rocks, "gone", 4, "x", 1, &message));
    DONE(lithify_delete(rocks, "gone", 4, &message));
    DONE(lithify_put(rocks, "r1", 2, "x", 1, &message));
    DONE(lithify_delete_range(rocks, "r", 1, "s", 1, &message));
    DONE(lithify_merge(rocks, "slate", 5, "meta", 4, &message));
    DONE(lithify_merge(rocks, "slate", 5, "morphic", 7, &message));
    DONE(lithify_put_if_absent(rocks, "tuff", 4, "igneous", 7, &message));
    ANSWERS(LITHIFY_ABSENT, lithify_put_if_absent(rocks, "tuff", 4, "no", 2, &message));
    DONE(lithify_compare_and_put(rocks, "tuff", 4, "igneous", 7, "ash", 3, &message));
    ANSWERS(LITHIFY_ABSENT,
            lithify_compare_and_put(rocks, "tuff", 4, "igneous", 7, "no", 2, &message));
}

static size_t row(char *to, const char *key, const char *value) {
    uint32_t lengths[2];
    lengths[0] = (uint32_t)strlen(key);
    lengths[1] = value ? (uint32_t)strlen(value) : LITHIFY_REMOVAL;
    memcpy(to, lengths, 8);
    memcpy(to + 8, key, lengths[0]);
    if (value) {
        memcpy(to + 8 + lengths[0], value, lengths[1]);
    }
    return 8 + lengths[0] + (value ? lengths[1] : 0);
}

static void batches(void) {
    lithify_batch *batch = lithify_batch_new();
    char rows[256];
    size_t length;
    DONE(lithify_batch_put(batch, rocks, "b1", 2, "1", 1, &message));
    DONE(lithify_batch_put(batch, rocks, "b2", 2, "2", 1, &message));
    DONE(lithify_batch_delete(batch, rocks, "b1", 2, &message));
    DONE(lithify_batch_put(batch, rocks, "b3", 2, "3", 1, &message));
    DONE(lithify_batch_single_delete(batch, rocks, "b3", 2, &message));
    DONE(lithify_batch_merge(batch, rocks, "b2", 2, "+", 1, &message));
    DONE(lithify_batch_put(batch, rocks, "x1", 2, "1", 1, &message));
    DONE(lithify_batch_delete_range(batch, rocks, "x", 1, "y", 1, &message));
    length = row(rows, "b4", "four");
    length += row(rows + length, "b5", "");
    length += row(rows + length, "b4", NULL);
    DONE(lithify_batch_rows(batch, rocks, rows, length, &message));
    CHECK(lithify_batch_count(batch) == 11);
    CHECK(lithify_batch_size_bytes(batch) > 20);
    DONE(lithify_batch_commit(db, batch, LITHIFY_DURABILITY_SYNC, &message));
    CHECK(lithify_batch_count(batch) == 11);
    lithify_batch_clear(batch);
    CHECK(lithify_batch_count(batch) == 0);
    DONE(lithify_batch_commit(db, batch, LITHIFY_DURABILITY_DEFAULT, &message));
    lithify_batch_free(batch);
}

static void reads(void) {
    char *value = NULL, buffer[16];
    size_t length = 0;
    lithify_pinned *pinned = NULL, *many[3];
    lithify_snapshot *snapshot = lithify_snapshot_new(db, &message);
    const void *keys[3];
    size_t lengths[3];
    CHECK(snapshot != NULL && lithify_snapshot_sequence(snapshot) > 0);
    DONE(lithify_put(rocks, "basalt", 6, "volcanic", 8, &message));
    DONE(lithify_get(rocks, NULL, "basalt", 6, &value, &length, &message));
    IS("volcanic", value, length);
    lithify_free(value);
    DONE(lithify_get(rocks, snapshot, "basalt", 6, &value, &length, &message));
    IS("igneous", value, length);
    lithify_free(value);
    DONE(lithify_get(rocks, NULL, "chalk", 5, &value, &length, &message));
    CHECK(value != NULL && length == 0);
    lithify_free(value);
    ANSWERS(LITHIFY_ABSENT, lithify_get(rocks, NULL, "x1", 2, &value, &length, &message));
    CHECK(value == NULL && length == 0);
    DONE(lithify_get_into(rocks, NULL, "slate", 5, buffer, sizeof buffer, &length, &message));
    IS("metamorphic", buffer, length);
    ANSWERS(LITHIFY_SHORT, lithify_get_into(rocks, NULL, "slate", 5, buffer, 3, &length, &message));
    CHECK(length == 11);
    DONE(lithify_get_pinned(rocks, NULL, "b2", 2, &pinned, &message));
    CHECK(memcmp(lithify_pinned_value(pinned, &length), "2+", 2) == 0 && length == 2);
    lithify_pinned_free(pinned);
    DONE(lithify_contains(rocks, NULL, "tuff", 4, &message));
    ANSWERS(LITHIFY_ABSENT, lithify_contains(rocks, snapshot, "granite", 7, &message));
    keys[0] = "basalt", keys[1] = "granite", keys[2] = "tuff";
    lengths[0] = 6, lengths[1] = 7, lengths[2] = 4;
    DONE(lithify_multi_get(rocks, snapshot, 3, keys, lengths, many, &message));
    CHECK(many[1] == NULL);
    CHECK(memcmp(lithify_pinned_value(many[0], &length), "igneous", 7) == 0 && length == 7);
    CHECK(memcmp(lithify_pinned_value(many[2], &length), "ash", 3) == 0 && length == 3);
    lithify_pinned_free(many[0]);
    lithify_pinned_free(many[1]);
    lithify_pinned_free(many[2]);
    lithify_snapshot_free(snapshot);
}

static void stands_on(lithify_cursor *cursor, const char *key) {
    size_t length = 0;
    const void *bytes = lithify_cursor_key(cursor, &length);
    CHECK(lithify_cursor_valid(cursor));
    IS(key, bytes, length);
}

/* Rows: b2 b5 basalt chalk slate tuff */
static void cursors(void) {
    lithify_cursor *cursor = NULL;
    const void *value;
    size_t length = 7, used = 0, rows = 0;
    char buffer[64];
    DONE(lithify_cursor_open(rocks, NULL, NULL, 0, NULL, 0, 0, &cursor, &message));
    CHECK(!lithify_cursor_valid(cursor));
    CHECK(lithify_cursor_key(cursor, &length) == NULL && length == 0);
    DONE(lithify_cursor_next(cursor, &message));
    stands_on(cursor, "b2");
    DONE(lithify_cursor_last(cursor, &message));
    stands_on(cursor, "tuff");
    value = lithify_cursor_value(cursor, &length);
    IS("ash", value, length);
    DONE(lithify_cursor_prev(cursor, &message));
    stands_on(cursor, "slate");
    DONE(lithify_cursor_seek(cursor, "c", 1, &message));
    stands_on(cursor, "chalk");
    DONE(lithify_cursor_seek_for_prev(cursor, "c", 1, &message));
    stands_on(cursor, "basalt");
    DONE(lithify_cursor_first(cursor, &message));
    stands_on(cursor, "b2");
    ANSWERS(LITHIFY_ABSENT, lithify_cursor_seek(cursor, "z", 1, &message));
    CHECK(!lithify_cursor_valid(cursor));
    DONE(lithify_cursor_first(cursor, &message));
    DONE(lithify_cursor_fill(cursor, LITHIFY_FORWARD, 2, buffer, sizeof buffer, &used, &rows,
                             &message));
    CHECK(rows == 2 && used == 16 + 2 + 6 + 8);
    stands_on(cursor, "basalt");
    ANSWERS(LITHIFY_SHORT, lithify_cursor_fill(cursor, LITHIFY_FORWARD, 9, buffer, 5, &used, &rows,
                                               &message));
    CHECK(rows == 0 && used == 13);
    ANSWERS(LITHIFY_ABSENT, lithify_cursor_fill(cursor, LITHIFY_FORWARD | LITHIFY_KEYS_ONLY, 9, buffer,
                                                sizeof buffer, &used, &rows, &message));
    CHECK(rows == 3 && used == 24 + 5 + 5 + 4);
    lithify_cursor_free(cursor);
    DONE(lithify_cursor_prefix(rocks, NULL, "b", 1, &cursor, &message));
    ANSWERS(LITHIFY_ABSENT, lithify_cursor_fill(cursor, LITHIFY_BACKWARD, 9, buffer, sizeof buffer,
                                                &used, &rows, &message));
    CHECK(rows == 3 && memcmp(buffer + 8, "basalt", 6) == 0);
    lithify_cursor_free(cursor);
    DONE(lithify_cursor_open(rocks, NULL, "b2", 2, "chalk", 5,
                             LITHIFY_START_EXCLUDED | LITHIFY_END_INCLUDED, &cursor, &message));
    DONE(lithify_cursor_next(cursor, &message));
    stands_on(cursor, "b5");
    DONE(lithify_cursor_last(cursor, &message));
    stands_on(cursor, "chalk");
    lithify_cursor_free(cursor);
}

static void transactions(void) {
    lithify_transaction *transaction = NULL, *other = NULL;
    lithify_cursor *cursor = NULL;
    char *value = NULL;
    size_t length = 0;
    DONE(lithify_transaction_begin(db, LITHIFY_PESSIMISTIC, &transaction, &message));
    DONE(lithify_transaction_set_lock_timeout_ms(transaction, 0, &message));
    DONE(lithify_transaction_set_snapshot(transaction, &message));
    DONE(lithify_transaction_read_at_snapshot(transaction, &message));
    DONE(lithify_transaction_get_for_update(transaction, rocks, "tuff", 4, &value, &length, &message));
    IS("ash", value, length);
    lithify_free(value);
    DONE(lithify_transaction_put(transaction, rocks, "t1", 2, "1", 1, &message));
    DONE(lithify_transaction_set_savepoint(transaction, &message));
    DONE(lithify_transaction_put(transaction, rocks, "t2", 2, "2", 1, &message));
    DONE(lithify_transaction_rollback_to_savepoint(transaction, &message));
    ANSWERS(LITHIFY_ABSENT,
            lithify_transaction_get(transaction, rocks, "t2", 2, &value, &length, &message));
    DONE(lithify_transaction_merge(transaction, rocks, "t1", 2, "+", 1, &message));
    DONE(lithify_transaction_delete(transaction, rocks, "b2", 2, &message));
    DONE(lithify_transaction_single_delete(transaction, rocks, "b5", 2, &message));
    DONE(lithify_transaction_delete(transaction, rocks, "chalk", 5, &message));
    DONE(lithify_transaction_cursor(transaction, rocks, NULL, 0, NULL, 0, 0, &cursor, &message));
    DONE(lithify_cursor_next(cursor, &message));
    stands_on(cursor, "basalt");
    DONE(lithify_cursor_next(cursor, &message));
    stands_on(cursor, "slate");
    lithify_cursor_free(cursor);
    /* Another one waits for none of the rows. */
    DONE(lithify_transaction_begin(db, LITHIFY_PESSIMISTIC, &other, &message));
    DONE(lithify_transaction_set_lock_timeout_ms(other, 0, &message));
    FAILS(LITHIFY_LOCK_TIMEOUT, "lock", lithify_transaction_put(other, rocks, "tuff", 4, "x", 1, &message));
    DONE(lithify_transaction_rollback(other, &message));
    FAILS(LITHIFY_CLOSED, "begin another one",
          lithify_transaction_commit(other, LITHIFY_DURABILITY_DEFAULT, &message));
    lithify_transaction_free(other);
    DONE(lithify_transaction_commit(transaction, LITHIFY_DURABILITY_BUFFERED, &message));
    lithify_transaction_free(transaction);
    ANSWERS(LITHIFY_ABSENT, lithify_contains(rocks, NULL, "chalk", 5, &message));
    /* An optimistic one finds out at its commit. */
    DONE(lithify_transaction_begin(db, LITHIFY_OPTIMISTIC, &transaction, &message));
    DONE(lithify_transaction_get(transaction, rocks, "t1", 2, &value, &length, &message));
    IS("1+", value, length);
    lithify_free(value);
    DONE(lithify_put(rocks, "t1", 2, "theirs", 6, &message));
    DONE(lithify_transaction_put(transaction, rocks, "t1", 2, "ours", 4, &message));
    FAILS(LITHIFY_CONFLICT, "conflict",
          lithify_transaction_commit(transaction, LITHIFY_DURABILITY_DEFAULT, &message));
    lithify_transaction_free(transaction);
}

static void ingests(void) {
    lithify_ingest *ingest = NULL;
    char rows[64];
    uint64_t count = 0;
    size_t length;
    DONE(lithify_ingest_begin(rocks, &ingest, &message));
    DONE(lithify_ingest_put(ingest, "i1", 2, "1", 1, &message));
    DONE(lithify_ingest_delete(ingest, "i2", 2, &message));
    length = row(rows, "i3", "3");
    length += row(rows + length, "i4", NULL);
    DONE(lithify_ingest_rows(ingest, rows, length, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "i1", lithify_ingest_put(ingest, "i1", 2, "1", 1, &message));
    DONE(lithify_ingest_commit(ingest, &count, &message));
    CHECK(count == 4);
    FAILS(LITHIFY_CLOSED, "committed", lithify_ingest_put(ingest, "i9", 2, "1", 1, &message));
    lithify_ingest_free(ingest);
    DONE(lithify_contains(rocks, NULL, "i3", 2, &message));
    DONE(lithify_ingest_begin(rocks, &ingest, &message));
    DONE(lithify_ingest_put(ingest, "j1", 2, "1", 1, &message));
    lithify_ingest_free(ingest);
    ANSWERS(LITHIFY_ABSENT, lithify_contains(rocks, NULL, "j1", 2, &message));
}

static void statistics(void) {
    char *text = NULL;
    uint64_t bytes = 0, rows = 0;
    DONE(lithify_family_flush(rocks, &message));
    DONE(lithify_flush(db, &message));
    DONE(lithify_sync(db, &message));
    DONE(lithify_compact_range(rocks, NULL, 0, NULL, 0, &message));
    DONE(lithify_wait_for_compaction(db, &message));
    DONE(lithify_approximate(rocks, NULL, 0, NULL, 0, &bytes, &rows, &message));
    CHECK(bytes > 0 && rows >= 5);
    DONE(lithify_stats_text(db, &text, &message));
    CHECK(strstr(text, "level") != NULL);
    lithify_free(text);
    DONE(lithify_stats_json(db, &text, &message));
    CHECK(text[0] == '{');
    lithify_free(text);
    DONE(lithify_stats_prometheus(db, &text, &message));
    CHECK(strstr(text, "# TYPE lithify_") != NULL);
    lithify_free(text);
    DONE(lithify_stats_open_metrics(db, &text, &message));
    CHECK(strstr(text, "# EOF") != NULL);
    lithify_free(text);
    DONE(lithify_explain_text(rocks, &text, &message));
    CHECK(strstr(text, "rocks") != NULL);
    lithify_free(text);
    DONE(lithify_explain_json(rocks, &text, &message));
    CHECK(text[0] == '{');
    lithify_free(text);
}

static void copies(void) {
    char *text = NULL;
    uint64_t id = 0;
    lithify_db *reader = NULL;
    lithify_family *family = NULL;
    DONE(lithify_checkpoint(db, copy, &message));
    DONE(lithify_backup(db, store, "a \"note\"", &id, &message));
    DONE(lithify_backup(db, store, NULL, NULL, &message));
    CHECK(id == 1);
    DONE(lithify_backup_list(store, &text, &message));
    CHECK(strstr(text, "\"note\":\"a \\\"note\\\"\"") != NULL);
    lithify_free(text);
    DONE(lithify_backup_purge(store, 1, &message));
    FAILS(LITHIFY_NOT_FOUND, "backup", lithify_restore(store, 1, restored, &message));
    DONE(lithify_restore(store, 0, restored, &message));
    DONE(lithify_verify(restored, &text, &message));
    CHECK(strlen(text) > 0);
    lithify_free(text);
    DONE(lithify_repair(restored, repaired, &text, &message));
    lithify_free(text);
    /* A reader beside the writer. */
    DONE(lithify_open_read_only(path, NULL, &reader, &message));
    DONE(lithify_family_existing(reader, "rocks", &family, &message));
    DONE(lithify_put(rocks, "late", 4, "x", 1, &message));
    ANSWERS(LITHIFY_ABSENT, lithify_contains(family, NULL, "late", 4, &message));
    FAILS(LITHIFY_READ_ONLY, "read", lithify_put(family, "a", 1, "x", 1, &message));
    lithify_family_free(family);
    DONE(lithify_refresh(reader, &message));
    DONE(lithify_family_existing(reader, "rocks", &family, &message));
    DONE(lithify_contains(family, NULL, "late", 4, &message));
    lithify_family_free(family);
    lithify_db_free(reader);
}

static void shared(void) {
    lithify_resources *resources = NULL;
    lithify_db *one = NULL, *two = NULL;
    DONE(lithify_resources_new(64 << 20, 1, &resources, &message));
    DONE(lithify_open(copy, NULL, resources, &one, &message));
    DONE(lithify_open(repaired, NULL, resources, &two, &message));
    CHECK(lithify_resources_used_bytes(resources) > 0);
    lithify_resources_free(resources);
    DONE(lithify_close(one, &message));
    DONE(lithify_close(one, &message));
    lithify_db_free(one);
    lithify_db_free(two);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    snprintf(path, sizeof path, "%s/db", argv[1]);
    snprintf(copy, sizeof copy, "%s/copy", argv[1]);
    snprintf(store, sizeof store, "%s/store", argv[1]);
    snprintf(restored, sizeof restored, "%s/restored", argv[1]);
    snprintf(repaired, sizeof repaired, "%s/repaired", argv[1]);
    library();
    options();
    families();
    writes();
    batches();
    reads();
    cursors();
    transactions();
    ingests();
    statistics();
    copies();
    shared();
    lithify_family_free(rocks);
    FAILS(LITHIFY_LOCKED, path, lithify_destroy(path, &message));
    DONE(lithify_close(db, &message));
    lithify_db_free(db);
    DONE(lithify_destroy(path, &message));
    FAILS(LITHIFY_NOT_FOUND, path, lithify_destroy(path, &message));
    puts("every function answered as it should");
    return 0;
}

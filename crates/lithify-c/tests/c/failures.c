/* Calls functions as they are not meant to be called. argv[1]: an empty directory. */
#include "check.h"

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static lithify_db *db;
static lithify_family *rocks;
static char path[4096];

static void bad_arguments(void) {
    lithify_db *none = NULL;
    lithify_cursor *cursor = NULL;
    lithify_transaction *transaction = NULL;
    lithify_pinned *pinned = NULL;
    const void *keys[1] = {"a"};
    lithify_options *options = lithify_options_new();
    lithify_family_options *family = lithify_family_options_new();
    lithify_batch *batch = lithify_batch_new();
    char *value = NULL, *text = NULL, big[70000];
    size_t length = 0;
    memset(big, 'x', sizeof big);
    FAILS(LITHIFY_INVALID_ARGUMENT, "NULL", lithify_put(NULL, "a", 1, "b", 1, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "NULL", lithify_put(rocks, NULL, 1, "b", 1, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "length", lithify_put(rocks, "a", (size_t)-1, "b", 1, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "NULL", lithify_get(rocks, NULL, "a", 1, NULL, &length, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "NULL", lithify_open(NULL, NULL, NULL, &none, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "NULL", lithify_open(path, NULL, NULL, NULL, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "UTF-8", lithify_open("\xff", NULL, NULL, &none, &message));
    FAILS(LITHIFY_LIMIT_EXCEEDED, "key", lithify_put(rocks, big, sizeof big, "b", 1, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "flags",
          lithify_cursor_open(rocks, NULL, NULL, 0, NULL, 0, 64, &cursor, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "kind", lithify_transaction_begin(db, 7, &transaction, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "sizes",
          lithify_options_set(options, "sizes", "1", &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "durability",
          lithify_options_set(options, "durability", "often", &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "name=value",
          lithify_options_parse(options, "memtable_bytes=1MiB quick", &message));
    DONE(lithify_options_text(options, &text, &message));
    CHECK(strstr(text, "memtable_bytes=16777216") != NULL); /* all of a text, or none */
    lithify_free(text);
    FAILS(LITHIFY_INVALID_ARGUMENT, "compression",
          lithify_family_options_set(family, "compression", "zip", &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "byte 0", lithify_batch_rows(batch, rocks, "xxxxxxxxxxxx", 12, &message));
    CHECK(lithify_batch_count(batch) == 0);
    FAILS(LITHIFY_INVALID_ARGUMENT, "durability", lithify_batch_commit(db, batch, 9, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "merge operator", lithify_merge(rocks, "a", 1, "b", 1, &message));
    FAILS(LITHIFY_NOT_FOUND, "nothing", lithify_family_drop(db, "nothing", &message));
    FAILS(LITHIFY_NOT_FOUND, "store", lithify_backup_list("/nonexistent/store", &text, &message));
    FAILS(LITHIFY_NOT_FOUND, "store", lithify_backup_purge("/nonexistent/store", 1, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "length",
          lithify_multi_get(rocks, NULL, (size_t)-1, keys, &length, &pinned, &message));
    pinned = (lithify_pinned *)big; /* what it held before is not an answer */
    ANSWERS(LITHIFY_ABSENT, lithify_get_pinned(rocks, NULL, "no such", 7, &pinned, &message));
    CHECK(pinned == NULL);
    FAILS(LITHIFY_ALREADY_EXISTS, path, lithify_checkpoint(db, path, &message));
    /* A message is not asked for. */
    ANSWERS(LITHIFY_INVALID_ARGUMENT, lithify_put(NULL, "a", 1, "b", 1, NULL));
    /* NULL is freed and asked by all. */
    lithify_db_free(NULL);
    lithify_cursor_free(NULL);
    CHECK(lithify_cursor_valid(NULL) == 0 && lithify_cursor_key(NULL, NULL) == NULL);
    CHECK(lithify_batch_count(NULL) == 0 && lithify_pinned_value(NULL, &length) == NULL);
    CHECK(lithify_snapshot_sequence(NULL) == 0 && lithify_resources_used_bytes(NULL) == 0);
    CHECK(value == NULL && none == NULL && cursor == NULL && transaction == NULL);
    lithify_options_free(options);
    lithify_family_options_free(family);
    lithify_batch_free(batch);
}

/* Two databases do not mix in one batch. */
static void another_database(const char *directory) {
    char other_path[4096];
    lithify_db *other = NULL;
    lithify_batch *batch = lithify_batch_new();
    snprintf(other_path, sizeof other_path, "%s/other", directory);
    DONE(lithify_open(other_path, NULL, NULL, &other, &message));
    DONE(lithify_batch_put(batch, rocks, "a", 1, "b", 1, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "another database",
          lithify_batch_commit(other, batch, LITHIFY_DURABILITY_DEFAULT, &message));
    ANSWERS(LITHIFY_ABSENT, lithify_contains(rocks, NULL, "a", 1, &message));
    lithify_batch_free(batch);
    lithify_db_free(other);
}

/* The code of a child process that runs this. */
#define IN_CHILD(body)                                     \
    do {                                                   \
        int status = 0;                                    \
        pid_t child = fork();                              \
        CHECK(child >= 0);                                 \
        if (child == 0) {                                  \
            body;                                          \
            _exit(0);                                      \
        }                                                  \
        CHECK(waitpid(child, &status, 0) == child);        \
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0); \
    } while (0)

static void other_processes(void) {
    lithify_db *second = NULL;
    FAILS(LITHIFY_LOCKED, path, lithify_open(path, NULL, NULL, &second, &message));
    IN_CHILD({
        FAILS(LITHIFY_CLOSED, "fork", lithify_put(rocks, "a", 1, "b", 1, &message));
        FAILS(LITHIFY_CLOSED, "fork", lithify_close(db, &message));
        FAILS(LITHIFY_LOCKED, path, lithify_open(path, NULL, NULL, &second, &message));
        lithify_family_free(rocks);
        lithify_db_free(db);
    });
    DONE(lithify_put(rocks, "after", 5, "the fork", 8, &message));
}

/* What is left of a database that was closed answers so, in whatever order it is freed. */
static void after_close(void) {
    lithify_cursor *cursor = NULL;
    lithify_transaction *transaction = NULL;
    lithify_ingest *ingest = NULL;
    lithify_snapshot *snapshot = lithify_snapshot_new(db, &message);
    lithify_pinned *pinned = NULL;
    const void *pinned_value;
    char *value = NULL;
    size_t length = 0;
    DONE(lithify_cursor_open(rocks, NULL, NULL, 0, NULL, 0, 0, &cursor, &message));
    DONE(lithify_transaction_begin(db, LITHIFY_PESSIMISTIC, &transaction, &message));
    DONE(lithify_ingest_begin(rocks, &ingest, &message));
    DONE(lithify_get_pinned(rocks, NULL, "after", 5, &pinned, &message));
    DONE(lithify_close(db, &message));
    FAILS(LITHIFY_CLOSED, "closed", lithify_put(rocks, "a", 1, "b", 1, &message));
    FAILS(LITHIFY_CLOSED, "closed", lithify_get(rocks, snapshot, "a", 1, &value, &length, &message));
    ANSWERS(LITHIFY_ABSENT, lithify_cursor_seek(cursor, "z", 1, &message));
    FAILS(LITHIFY_CLOSED, "closed",
          lithify_transaction_put(transaction, rocks, "a", 1, "b", 1, &message));
    FAILS(LITHIFY_CLOSED, "closed",
          lithify_transaction_commit(transaction, LITHIFY_DURABILITY_DEFAULT, &message));
    FAILS(LITHIFY_CLOSED, "closed", lithify_ingest_commit(ingest, NULL, &message));
    FAILS(LITHIFY_CLOSED, "closed", lithify_flush(db, &message));
    lithify_db_free(db);
    pinned_value = lithify_pinned_value(pinned, &length);
    IS("the fork", pinned_value, length);
    lithify_family_free(rocks);
    lithify_transaction_free(transaction);
    lithify_ingest_free(ingest);
    lithify_cursor_free(cursor);
    lithify_snapshot_free(snapshot);
    lithify_pinned_free(pinned);
}

static void not_a_database(const char *directory) {
    char name[4096], *report = NULL;
    FILE *file;
    lithify_db *none = NULL;
    lithify_options *options = lithify_options_new();
    DONE(lithify_options_set(options, "create_if_missing", "false", &message));
    snprintf(name, sizeof name, "%s/missing", directory);
    FAILS(LITHIFY_NOT_FOUND, "missing", lithify_open(name, options, NULL, &none, &message));
    lithify_options_free(options);
    snprintf(name, sizeof name, "%s/db/CURRENT", directory);
    file = fopen(name, "w");
    CHECK(file != NULL && fputs("not what was written", file) > 0 && fclose(file) == 0);
    FAILS(LITHIFY_CORRUPTION, "CURRENT", lithify_open(path, NULL, NULL, &none, &message));
    FAILS(LITHIFY_CORRUPTION, "repair", lithify_verify(path, NULL, &message));
    FAILS(LITHIFY_CORRUPTION, "CURRENT", lithify_verify(path, &report, &message));
    CHECK(strstr(report, "damage: ") != NULL && strstr(report, "/db/CURRENT") != NULL);
    lithify_free(report);
    CHECK(none == NULL);
}

static void make_directory(char *name, size_t size, const char *parent, const char *child) {
    snprintf(name, size, "%s/%s", parent, child);
    CHECK(mkdir(name, 0777) == 0);
}

/* A directory of LevelDB is told as such, and nothing is left in it. */
static void another_engine(const char *directory) {
    char name[4096], file_name[8192], target[8192];
    FILE *file;
    char *report = NULL;
    lithify_db *none = NULL;
    make_directory(name, sizeof name, directory, "levels");
    snprintf(file_name, sizeof file_name, "%s/CURRENT", name);
    snprintf(target, sizeof target, "%s-repaired", name);
    file = fopen(file_name, "w");
    CHECK(file != NULL && fputs("MANIFEST-000004\n", file) > 0 && fclose(file) == 0);
    FAILS(LITHIFY_INVALID_ARGUMENT, "LevelDB", lithify_open(name, NULL, NULL, &none, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "LevelDB", lithify_open_read_only(name, NULL, &none, &message));
    FAILS(LITHIFY_INVALID_ARGUMENT, "LevelDB", lithify_repair(name, target, &report, &message));
    CHECK(access(target, F_OK) != 0);
    snprintf(file_name, sizeof file_name, "%s/READERS", name);
    CHECK(access(file_name, F_OK) != 0);
    CHECK(none == NULL && report == NULL);
    FAILS(LITHIFY_INVALID_ARGUMENT, "empty", lithify_open("", NULL, NULL, &none, &message));
}

/* A relative path is that of the time of opening, wherever the process goes afterwards. */
static void another_working_directory(const char *directory) {
    char before[4096], from[4096], to[4096], absolute[8192];
    lithify_db *moved = NULL;
    lithify_family *family = NULL;
    char *value = NULL;
    size_t length = 0;
    CHECK(getcwd(before, sizeof before) != NULL);
    make_directory(from, sizeof from, directory, "from");
    make_directory(to, sizeof to, directory, "to");
    CHECK(chdir(from) == 0);
    DONE(lithify_open("relative", NULL, NULL, &moved, &message));
    DONE(lithify_default_family(moved, &family, &message));
    DONE(lithify_put(family, "a", 1, "first", 5, &message));
    CHECK(chdir(to) == 0);
    DONE(lithify_flush(moved, &message));
    DONE(lithify_put(family, "b", 1, "second", 6, &message));
    DONE(lithify_flush(moved, &message));
    DONE(lithify_close(moved, &message));
    lithify_family_free(family);
    lithify_db_free(moved);
    CHECK(rmdir(to) == 0); /* nothing is in it */
    CHECK(chdir(before) == 0);
    snprintf(absolute, sizeof absolute, "%s/relative", from);
    DONE(lithify_open(absolute, NULL, NULL, &moved, &message));
    DONE(lithify_default_family(moved, &family, &message));
    DONE(lithify_get(family, NULL, "b", 1, &value, &length, &message));
    IS("second", value, length);
    lithify_free(value);
    lithify_family_free(family);
    lithify_db_free(moved);
}

/* A child opens what its parent has closed, though it has inherited the parent's open files. */
static void a_child_after_its_parent(const char *directory) {
    char name[4096], go;
    int status = 0, ends[2];
    pid_t child;
    lithify_db *opened = NULL;
    snprintf(name, sizeof name, "%s/inherited", directory);
    CHECK(pipe(ends) == 0);
    DONE(lithify_open(name, NULL, NULL, &opened, &message));
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        lithify_db *own = NULL;
        CHECK(read(ends[0], &go, 1) == 1);
        DONE(lithify_open(name, NULL, NULL, &own, &message));
        FAILS(LITHIFY_LOCKED, "this process", lithify_open(name, NULL, NULL, &opened, &message));
        DONE(lithify_close(own, &message));
        lithify_db_free(own);
        _exit(0);
    }
    DONE(lithify_close(opened, &message));
    CHECK(write(ends[1], "x", 1) == 1);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    lithify_db_free(opened);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    snprintf(path, sizeof path, "%s/db", argv[1]);
    DONE(lithify_open(path, NULL, NULL, &db, &message));
    DONE(lithify_family_open(db, "rocks", NULL, &rocks, &message));
    bad_arguments();
    another_database(argv[1]);
    other_processes();
    after_close();
    not_a_database(argv[1]);
    another_engine(argv[1]);
    another_working_directory(argv[1]);
    a_child_after_its_parent(argv[1]);
    puts("every failure was told as it should be");
    return 0;
}

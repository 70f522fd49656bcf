/*
 * Calls every function of leveldb/c.h and checks what it answers. C99 and C++11 both take it.
 * Built and run by crates/lithify-leveldb/test, plainly and under AddressSanitizer with its search for
 * leaks. The argument is a directory that is there and empty. With any second one nothing is forked:
 * valgrind takes what a child leaves for leaks.
 */
#include <leveldb/c.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static int checks = 0;

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        checks++;                                                                         \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);       \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

/* A call has succeeded. */
#define OK(failure)                                                                       \
    do {                                                                                  \
        if ((failure) != NULL) fprintf(stderr, "%s\n", (failure));                        \
        CHECK((failure) == NULL);                                                         \
    } while (0)

/* A call has failed with a text that begins so; the text ends here. */
static void failed(char **failure, const char *beginning) {
    CHECK(*failure != NULL);
    if (strncmp(*failure, beginning, strlen(beginning)) != 0) {
        fprintf(stderr, "not \"%s...\": %s\n", beginning, *failure);
        exit(1);
    }
    leveldb_free(*failure);
    *failure = NULL;
}

struct fixture {
    leveldb_options_t *options;
    leveldb_readoptions_t *read;
    leveldb_writeoptions_t *write;
    leveldb_t *db;
    char path[4096];
};

static void put(struct fixture *f, const char *key, const char *value) {
    char *failure = NULL;
    leveldb_put(f->db, f->write, key, strlen(key), value, strlen(value), &failure);
    OK(failure);
}

/* The value of a key is this; NULL for none. */
static void has(struct fixture *f, const char *key, const char *value) {
    char *failure = NULL;
    size_t length = 99;
    char *found = leveldb_get(f->db, f->read, key, strlen(key), &length, &failure);
    OK(failure);
    CHECK((found == NULL) == (value == NULL));
    CHECK(length == (value == NULL ? 0 : strlen(value)));
    if (value != NULL) CHECK(memcmp(found, value, length) == 0);
    free(found); /* Plain free, as many callers do. */
}

static int stands_on(leveldb_iterator_t *iterator, const char *key, const char *value) {
    size_t key_length, value_length;
    const char *found_key = leveldb_iter_key(iterator, &key_length);
    const char *found_value = leveldb_iter_value(iterator, &value_length);
    return leveldb_iter_valid(iterator) && key_length == strlen(key) &&
           memcmp(found_key, key, key_length) == 0 && value_length == strlen(value) &&
           memcmp(found_value, value, value_length) == 0;
}

static void open_db(struct fixture *f) {
    char *failure = NULL;
    f->db = leveldb_open(f->options, f->path, &failure);
    OK(failure);
    CHECK(f->db != NULL);
}

static void versions_and_memory(void) {
    CHECK(leveldb_major_version() == 1);
    CHECK(leveldb_minor_version() == 23);
    leveldb_free(NULL);
}

static void opening(struct fixture *f) {
    char *failure = NULL;
    CHECK(leveldb_open(f->options, f->path, &failure) == NULL);
    failed(&failure, "Invalid argument: ");
    leveldb_options_set_create_if_missing(f->options, 1);
    open_db(f);
    /* A text that is there already is freed and replaced. */
    failure = strdup("an earlier failure");
    CHECK(leveldb_open(f->options, f->path, &failure) == NULL);
    failed(&failure, "IO error: lock ");
    leveldb_destroy_db(f->options, f->path, &failure);
    failed(&failure, "IO error: lock ");
    leveldb_close(f->db);
    leveldb_options_set_error_if_exists(f->options, 1);
    CHECK(leveldb_open(f->options, f->path, &failure) == NULL);
    failed(&failure, "Invalid argument: ");
    leveldb_options_set_error_if_exists(f->options, 0);
    open_db(f);
}

static void reads_and_writes(struct fixture *f) {
    char *failure = NULL;
    size_t length;
    put(f, "basalt", "igneous");
    put(f, "basalt", "volcanic");
    has(f, "basalt", "volcanic");
    has(f, "chalk", NULL);
    leveldb_delete(f->db, f->write, "basalt", 6, &failure);
    OK(failure);
    has(f, "basalt", NULL);
    leveldb_writeoptions_set_sync(f->write, 1);
    put(f, "gneiss", "metamorphic");
    leveldb_writeoptions_set_sync(f->write, 0);
    /* Zeros and nothing are bytes as others. */
    leveldb_put(f->db, f->write, "a\0b", 3, NULL, 0, &failure);
    OK(failure);
    char *empty = leveldb_get(f->db, f->read, "a\0b", 3, &length, &failure);
    OK(failure);
    CHECK(empty != NULL && length == 0);
    leveldb_free(empty);
    leveldb_delete(f->db, f->write, "a\0b", 3, &failure);
    OK(failure);
    /* Longer than a key may be. */
    char *long_key = (char *)calloc(70000, 1);
    leveldb_put(f->db, f->write, long_key, 70000, "", 0, &failure);
    failed(&failure, "Invalid argument: ");
    free(long_key);
}

static void tell_put(void *state, const char *key, size_t key_length, const char *value,
                     size_t value_length) {
    char *text = (char *)state;
    sprintf(text + strlen(text), "+%.*s=%.*s", (int)key_length, key, (int)value_length, value);
}

static void tell_delete(void *state, const char *key, size_t key_length) {
    char *text = (char *)state;
    sprintf(text + strlen(text), "-%.*s", (int)key_length, key);
}

static void batches(struct fixture *f) {
    char *failure = NULL;
    char told[200] = "";
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    leveldb_writebatch_t *other = leveldb_writebatch_create();
    leveldb_writebatch_put(batch, "lost", 4, "x", 1);
    leveldb_writebatch_clear(batch);
    leveldb_writebatch_put(batch, "marble", 6, "white", 5);
    leveldb_writebatch_put(batch, "slate", 5, "grey", 4);
    leveldb_writebatch_put(other, "slate", 5, "black", 5);
    leveldb_writebatch_delete(other, "gneiss", 6);
    leveldb_writebatch_append(batch, other);
    leveldb_writebatch_iterate(batch, told, tell_put, tell_delete);
    CHECK(strcmp(told, "+marble=white+slate=grey+slate=black-gneiss") == 0);
    leveldb_write(f->db, f->write, batch, &failure);
    OK(failure);
    leveldb_write(f->db, f->write, batch, &failure);
    OK(failure);
    leveldb_writebatch_append(other, other);
    told[0] = 0;
    leveldb_writebatch_iterate(other, told, tell_put, tell_delete);
    CHECK(strcmp(told, "+slate=black-gneiss+slate=black-gneiss") == 0);
    leveldb_writebatch_destroy(batch);
    leveldb_writebatch_destroy(other);
    has(f, "lost", NULL);
    has(f, "marble", "white");
    has(f, "slate", "black");
    has(f, "gneiss", NULL);
}

static void iterators(struct fixture *f) {
    char *failure = NULL;
    leveldb_readoptions_set_verify_checksums(f->read, 1);
    leveldb_readoptions_set_fill_cache(f->read, 0);
    leveldb_iterator_t *iterator = leveldb_create_iterator(f->db, f->read);
    put(f, "pumice", "later than the iterator");
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_next(iterator);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_seek_to_first(iterator);
    CHECK(stands_on(iterator, "marble", "white"));
    leveldb_iter_next(iterator);
    CHECK(stands_on(iterator, "slate", "black"));
    leveldb_iter_prev(iterator);
    CHECK(stands_on(iterator, "marble", "white"));
    leveldb_iter_prev(iterator);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_seek_to_last(iterator);
    CHECK(stands_on(iterator, "slate", "black"));
    leveldb_iter_seek(iterator, "n", 1);
    CHECK(stands_on(iterator, "slate", "black"));
    leveldb_iter_seek(iterator, "zzz", 3);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_get_error(iterator, &failure);
    OK(failure);
    leveldb_iter_destroy(iterator);
}

static void snapshots(struct fixture *f) {
    const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(f->db);
    put(f, "pumice", "floats");
    leveldb_readoptions_set_snapshot(f->read, snapshot);
    has(f, "pumice", "later than the iterator");
    leveldb_iterator_t *iterator = leveldb_create_iterator(f->db, f->read);
    leveldb_readoptions_set_snapshot(f->read, NULL);
    leveldb_release_snapshot(f->db, snapshot);
    leveldb_iter_seek(iterator, "pumice", 6);
    CHECK(stands_on(iterator, "pumice", "later than the iterator"));
    leveldb_iter_destroy(iterator);
    has(f, "pumice", "floats");
}

static void figures(struct fixture *f) {
    const char *names[] = {"leveldb.num-files-at-level0", "leveldb.stats", "leveldb.sstables",
                           "leveldb.approximate-memory-usage", "lithify.stats", "lithify.stats-json",
                           "lithify.options"};
    const char *starts[] = {"", "z"};
    const char *limits[] = {"zz", "a"};
    const size_t start_lengths[] = {0, 1};
    const size_t limit_lengths[] = {2, 1};
    uint64_t sizes[] = {99, 99};
    leveldb_compact_range(f->db, NULL, 0, NULL, 0);
    leveldb_compact_range(f->db, "a", 1, "m", 1);
    for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
        char *text = leveldb_property_value(f->db, names[at]);
        CHECK(text != NULL && *text != 0);
        leveldb_free(text);
    }
    CHECK(leveldb_property_value(f->db, "leveldb.nothing") == NULL);
    leveldb_approximate_sizes(f->db, 2, starts, start_lengths, limits, limit_lengths, sizes);
    CHECK(sizes[0] > 0 && sizes[0] < 1000000);
    CHECK(sizes[1] == 0);
}

static int ended = 0;

static void end_state(void *state) {
    CHECK(strcmp((char *)state, "state") == 0);
    ended++;
}

static int compare(void *state, const char *a, size_t a_length, const char *b, size_t b_length) {
    CHECK(strcmp((char *)state, "state") == 0);
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order != 0 ? order : (a_length > b_length) - (a_length < b_length);
}

static const char *comparator_name(void *state) {
    CHECK(strcmp((char *)state, "state") == 0);
    return "example.Bytewise";
}

static void comparators(struct fixture *f) {
    char *failure = NULL;
    char state[] = "state";
    leveldb_comparator_t *comparator =
        leveldb_comparator_create(state, end_state, compare, comparator_name);
    leveldb_options_set_comparator(f->options, comparator);
    leveldb_close(f->db);
    CHECK(leveldb_open(f->options, f->path, &failure) == NULL);
    failed(&failure, "Invalid argument: leveldb.BytewiseComparator does not match existing "
                     "comparator : example.Bytewise");
    leveldb_destroy_db(f->options, f->path, &failure);
    OK(failure);
    leveldb_destroy_db(f->options, f->path, &failure);
    OK(failure);
    open_db(f);
    put(f, "b", "2");
    put(f, "a", "1");
    has(f, "b", "2");
    has(f, "c", NULL);
    leveldb_close(f->db);
    leveldb_options_set_comparator(f->options, NULL);
    CHECK(leveldb_open(f->options, f->path, &failure) == NULL);
    failed(&failure, "Invalid argument: example.Bytewise does not match");
    CHECK(ended == 0);
    leveldb_comparator_destroy(comparator);
    CHECK(ended == 1);
    leveldb_destroy_db(f->options, f->path, &failure);
    OK(failure);
    open_db(f);
}

static uint8_t policy_answer = 1;

static char *create_filter(void *state, const char *const *keys, const size_t *key_lengths, int count,
                           size_t *filter_length) {
    CHECK(strcmp((char *)state, "state") == 0);
    CHECK(count > 0 && keys[0] != NULL && key_lengths[0] > 0);
    *filter_length = 4;
    char *filter = (char *)malloc(4);
    memcpy(filter, "fake", 4);
    return filter;
}

static uint8_t key_may_match(void *state, const char *key, size_t key_length, const char *filter,
                             size_t filter_length) {
    CHECK(strcmp((char *)state, "state") == 0);
    CHECK(key != NULL && key_length > 0);
    CHECK(filter_length == 4 && memcmp(filter, "fake", 4) == 0);
    return policy_answer;
}

static const char *policy_name(void *state) {
    CHECK(strcmp((char *)state, "state") == 0);
    return "example.Policy";
}

static void filter_policies(struct fixture *f) {
    char state[] = "state";
    leveldb_filterpolicy_t *own =
        leveldb_filterpolicy_create(state, end_state, create_filter, key_may_match, policy_name);
    leveldb_filterpolicy_t *bloom = leveldb_filterpolicy_create_bloom(10);
    leveldb_close(f->db);
    leveldb_options_set_filter_policy(f->options, own);
    open_db(f);
    put(f, "foo", "x");
    leveldb_compact_range(f->db, NULL, 0, NULL, 0);
    has(f, "foo", "x");
    policy_answer = 0;
    has(f, "foo", NULL);
    policy_answer = 1;
    has(f, "foo", "x");
    leveldb_close(f->db);
    leveldb_options_set_filter_policy(f->options, bloom);
    open_db(f);
    has(f, "foo", "x");
    has(f, "bar", NULL);
    leveldb_close(f->db);
    leveldb_options_set_filter_policy(f->options, NULL);
    ended = 0;
    leveldb_filterpolicy_destroy(own);
    CHECK(ended == 1);
    leveldb_filterpolicy_destroy(bloom);
    open_db(f);
}

static void settings(struct fixture *f) {
    leveldb_cache_t *cache = leveldb_cache_create_lru(8 << 20);
    leveldb_env_t *env = leveldb_create_default_env();
    leveldb_close(f->db);
    leveldb_options_set_cache(f->options, cache);
    leveldb_options_set_env(f->options, env);
    leveldb_options_set_info_log(f->options, NULL);
    leveldb_options_set_paranoid_checks(f->options, 1);
    leveldb_options_set_write_buffer_size(f->options, 100000);
    leveldb_options_set_max_open_files(f->options, 10);
    leveldb_options_set_block_size(f->options, 1024);
    leveldb_options_set_block_restart_interval(f->options, 8);
    leveldb_options_set_max_file_size(f->options, 3 << 20);
    leveldb_options_set_compression(f->options, leveldb_no_compression);
    open_db(f);
    has(f, "foo", "x");
    char *options = leveldb_property_value(f->db, "lithify.options");
    CHECK(strstr(options, "memtable_bytes=100000") != NULL);
    CHECK(strstr(options, "block_size_bytes=1024") != NULL);
    CHECK(strstr(options, "table_bytes=3145728") != NULL);
    CHECK(strstr(options, "compression=none,none,none") != NULL);
    CHECK(strstr(options, "without effect: max_open_files=10") != NULL);
    leveldb_free(options);
    leveldb_close(f->db);
    leveldb_options_set_compression(f->options, leveldb_snappy_compression);
    leveldb_options_set_cache(f->options, NULL);
    leveldb_cache_destroy(cache);
    char *directory = leveldb_env_get_test_directory(env);
    struct stat found;
    CHECK(directory != NULL && stat(directory, &found) == 0 && S_ISDIR(found.st_mode));
    leveldb_free(directory);
    leveldb_env_destroy(env);
}

static void repairing(struct fixture *f) {
    char *failure = NULL;
    char current[5000];
    sprintf(current, "%s/CURRENT", f->path);
    leveldb_repair_db(f->options, f->path, &failure);
    OK(failure);
    open_db(f);
    has(f, "foo", "x");
    leveldb_repair_db(f->options, f->path, &failure);
    failed(&failure, "IO error: lock ");
    leveldb_close(f->db);
    /* Damage is told, and repaired. */
    CHECK(truncate(current, 20) == 0);
    CHECK(leveldb_open(f->options, f->path, &failure) == NULL);
    failed(&failure, "Corruption: ");
    leveldb_repair_db(f->options, f->path, &failure);
    OK(failure);
    open_db(f);
    has(f, "foo", "x");
}

/* In a child, what its parent opened fails, and ending it does nothing. */
static void forks(struct fixture *f) {
    leveldb_iterator_t *iterator = leveldb_create_iterator(f->db, f->read);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        char *failure = NULL;
        size_t length;
        int is_right = leveldb_get(f->db, f->read, "foo", 3, &length, &failure) == NULL &&
                       failure != NULL && strncmp(failure, "IO error: ", 10) == 0;
        leveldb_iter_seek_to_first(iterator);
        is_right = is_right && !leveldb_iter_valid(iterator);
        leveldb_iter_destroy(iterator);
        leveldb_close(f->db);
        _exit(is_right ? 0 : 1);
    }
    int status = 1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    leveldb_iter_seek_to_first(iterator);
    CHECK(stands_on(iterator, "foo", "x"));
    leveldb_iter_destroy(iterator);
    has(f, "foo", "x");
}

/* What must not be NULL and is: a failure, or nothing. */
static void nulls(struct fixture *f) {
    char *failure = NULL;
    size_t length = 7;
    leveldb_put(NULL, f->write, "a", 1, "b", 1, &failure);
    failed(&failure, "Invalid argument: ");
    leveldb_put(f->db, f->write, NULL, 3, "b", 1, &failure);
    failed(&failure, "Invalid argument: ");
    CHECK(leveldb_open(f->options, NULL, &failure) == NULL);
    failed(&failure, "Invalid argument: ");
    CHECK(leveldb_get(NULL, f->read, "a", 1, &length, NULL) == NULL && length == 0);
    CHECK(leveldb_create_iterator(NULL, f->read) == NULL);
    CHECK(leveldb_create_snapshot(NULL) == NULL);
    CHECK(leveldb_iter_valid(NULL) == 0);
    leveldb_iter_next(NULL);
    leveldb_writebatch_put(NULL, "a", 1, "b", 1);
    leveldb_close(NULL);
    leveldb_iter_destroy(NULL);
    leveldb_options_destroy(NULL);
}

int main(int argc, char **argv) {
    char *failure = NULL;
    struct fixture f;
    CHECK(argc == 2 || argc == 3);
    sprintf(f.path, "%s/database", argv[1]);
    f.options = leveldb_options_create();
    f.read = leveldb_readoptions_create();
    f.write = leveldb_writeoptions_create();
    versions_and_memory();
    opening(&f);
    reads_and_writes(&f);
    batches(&f);
    iterators(&f);
    snapshots(&f);
    figures(&f);
    comparators(&f);
    filter_policies(&f);
    settings(&f);
    repairing(&f);
    if (argc == 2) forks(&f);
    nulls(&f);
    leveldb_close(f.db);
    leveldb_destroy_db(f.options, f.path, &failure);
    OK(failure);
    leveldb_options_destroy(f.options);
    leveldb_readoptions_destroy(f.read);
    leveldb_writeoptions_destroy(f.write);
    printf("every function: %d checks passed, with Lithify %s\n", checks, lithify_leveldb_version());
    return 0;
}

// Package levigo has a comparator in C for the test beside it: tests themselves cannot have C code.
package levigo

/*
#include <leveldb/c.h>
#include <string.h>

static int destroyed = 0;

static void destroy(void *state) {
    (void)state;
    destroyed++;
}

static int compare(void *state, const char *a, size_t a_length, const char *b, size_t b_length) {
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    (void)state;
    return order != 0 ? order : (a_length > b_length) - (a_length < b_length);
}

static const char *name(void *state) {
    (void)state;
    return "example.Bytewise";
}

static leveldb_comparator_t *make(void) {
    return leveldb_comparator_create(NULL, destroy, compare, name);
}

static int count_destroyed(void) {
    return destroyed;
}
*/
import "C"

import "unsafe"

// newComparator makes a comparator that orders bytewise, under a name of its own.
func newComparator() unsafe.Pointer {
	return unsafe.Pointer(C.make())
}

// destroyedComparators counts those that were destroyed.
func destroyedComparators() int {
	return int(C.count_destroyed())
}

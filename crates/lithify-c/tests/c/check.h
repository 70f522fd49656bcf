/* What the test programs share. */
#ifndef CHECK_H
#define CHECK_H

#include "lithify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *message;

/* Ends the program at a condition that does not hold. */
#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: not so: %s (last message: %s)\n", __FILE__, __LINE__,   \
                    #condition, message ? message : "none");                                \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

/* A call must answer this code. */
#define ANSWERS(code, call)                                                                 \
    do {                                                                                    \
        int answered = (call);                                                              \
        if (answered != (code)) {                                                           \
            fprintf(stderr, "%s:%d: %s answered %s: %s\n", __FILE__, __LINE__, #call,       \
                    lithify_code_name(answered), message ? message : "no message");         \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

#define DONE(call) ANSWERS(LITHIFY_OK, call)

/* A call must fail with this code and a message that has this text in it. */
#define FAILS(code, text, call)                                                             \
    do {                                                                                    \
        lithify_free(message);                                                              \
        message = NULL;                                                                     \
        ANSWERS(code, call);                                                                \
        CHECK(message != NULL && strstr(message, text) != NULL);                            \
        lithify_free(message);                                                              \
        message = NULL;                                                                     \
    } while (0)

/* A value must be these bytes. */
#define IS(expected, value, length)                                                         \
    CHECK((length) == strlen(expected) && memcmp((value), (expected), (length)) == 0)

#endif

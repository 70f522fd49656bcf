/*
 * WiredTiger as flat functions, for callers that find symbols by name.
 *
 * The library's own interface is structures of function pointers, some of them with variable
 * arguments, whose layout changes from version to version. So this file is compiled against the
 * header of the version that it is linked with, and hides both.
 *
 * Every call returns one of the codes below. After FLAT_RETRY and FLAT_FAILED the thread that
 * called finds the reason in flat_message(). A session and its cursors belong to one thread at a
 * time. Rows that a call hands out stay in place until the next call for the same space, or until
 * flat_reset; whoever reads one calls flat_reset when it is copied, because a cursor that stands
 * on a row keeps its page in memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lz4.h>
#include <wiredtiger.h>
#include <zlib.h>
#include <zstd.h>

/* Changes with every change of a function here. */
#define FLAT_VERSION 2

#define FLAT_OK 0
#define FLAT_NOT_FOUND 1
#define FLAT_RETRY 2
#define FLAT_FAILED 3

#define FLAT_EXPORT __attribute__((visibility("default")))

struct flat_session {
    WT_SESSION *session;
    size_t spaces;
    WT_CURSOR *cursors[];
};

static _Thread_local char message[512];

static int
on_error(WT_EVENT_HANDLER *handler, WT_SESSION *session, int error, const char *text)
{
    (void)handler;
    (void)session;
    (void)error;
    /* The first complaint of a call is the cause of the others. */
    if (message[0] == '\0')
        (void)snprintf(message, sizeof(message), "%s", text);
    return (0);
}

static int
on_message(WT_EVENT_HANDLER *handler, WT_SESSION *session, const char *text)
{
    (void)handler;
    (void)session;
    (void)text;
    return (0);
}

static WT_EVENT_HANDLER handler = {on_error, on_message, NULL, NULL, NULL};

static int
code_of(int error)
{
    switch (error) {
    case 0:
        return (FLAT_OK);
    case WT_NOTFOUND:
        return (FLAT_NOT_FOUND);
    default:
        if (message[0] == '\0')
            (void)snprintf(message, sizeof(message), "%s", wiredtiger_strerror(error));
        return (error == WT_ROLLBACK ? FLAT_RETRY : FLAT_FAILED);
    }
}

FLAT_EXPORT int
flat_version(void)
{
    return (FLAT_VERSION);
}

FLAT_EXPORT const char *
flat_library_version(void)
{
    static _Thread_local char text[32];
    int major, minor, patch;

    (void)wiredtiger_version(&major, &minor, &patch);
    (void)snprintf(text, sizeof(text), "%d.%d.%d", major, minor, patch);
    return (text);
}

/* Version of a codec's library; NULL when the library does not tell. */
FLAT_EXPORT const char *
flat_codec_version(const char *codec)
{
    if (strcmp(codec, "lz4") == 0)
        return (LZ4_versionString());
    if (strcmp(codec, "zlib") == 0)
        return (zlibVersion());
    if (strcmp(codec, "zstd") == 0)
        return (ZSTD_versionString());
    return (NULL);
}

FLAT_EXPORT const char *
flat_message(void)
{
    return (message);
}

FLAT_EXPORT int
flat_open(const char *home, const char *config, WT_CONNECTION **connection)
{
    message[0] = '\0';
    return (code_of(wiredtiger_open(home, &handler, config, connection)));
}

FLAT_EXPORT int
flat_close(WT_CONNECTION *connection)
{
    message[0] = '\0';
    return (code_of(connection->close(connection, NULL)));
}

FLAT_EXPORT int
flat_create(WT_CONNECTION *connection, const char *uri, const char *config)
{
    WT_SESSION *session;
    int error, closed;

    message[0] = '\0';
    if ((error = connection->open_session(connection, NULL, NULL, &session)) != 0)
        return (code_of(error));
    error = session->create(session, uri, config);
    closed = session->close(session, NULL);
    return (code_of(error != 0 ? error : closed));
}

FLAT_EXPORT int
flat_checkpoint(WT_CONNECTION *connection)
{
    WT_SESSION *session;
    int error, closed;

    message[0] = '\0';
    if ((error = connection->open_session(connection, NULL, NULL, &session)) != 0)
        return (code_of(error));
    error = session->checkpoint(session, NULL);
    closed = session->close(session, NULL);
    return (code_of(error != 0 ? error : closed));
}

FLAT_EXPORT void
flat_session_close(struct flat_session *self)
{
    /* Closes its cursors and rolls an open transaction back. */
    (void)self->session->close(self->session, NULL);
    free(self);
}

FLAT_EXPORT int
flat_session_open(
  WT_CONNECTION *connection, const char *const *uris, size_t spaces, struct flat_session **made)
{
    struct flat_session *self;
    size_t space;
    int error;

    message[0] = '\0';
    self = calloc(1, sizeof(*self) + spaces * sizeof(self->cursors[0]));
    if (self == NULL)
        return (code_of(ENOMEM));
    self->spaces = spaces;
    error = connection->open_session(connection, NULL, "isolation=snapshot", &self->session);
    if (error != 0) {
        free(self);
        return (code_of(error));
    }
    for (space = 0; space < spaces && error == 0; space++)
        error = self->session->open_cursor(
          self->session, uris[space], NULL, "overwrite=true", &self->cursors[space]);
    if (error != 0) {
        flat_session_close(self);
        return (code_of(error));
    }
    *made = self;
    return (FLAT_OK);
}

FLAT_EXPORT int
flat_begin(struct flat_session *self)
{
    message[0] = '\0';
    return (code_of(self->session->begin_transaction(self->session, NULL)));
}

/* After an error the transaction is rolled back. */
FLAT_EXPORT int
flat_commit(struct flat_session *self)
{
    message[0] = '\0';
    return (code_of(self->session->commit_transaction(self->session, NULL)));
}

FLAT_EXPORT int
flat_rollback(struct flat_session *self)
{
    message[0] = '\0';
    return (code_of(self->session->rollback_transaction(self->session, NULL)));
}

static void
set_key(WT_CURSOR *cursor, const void *key, size_t size)
{
    WT_ITEM item;

    memset(&item, 0, sizeof(item));
    item.data = key;
    item.size = size;
    cursor->set_key(cursor, &item);
}

static int
value_of(WT_CURSOR *cursor, const void **value, size_t *size)
{
    WT_ITEM item;
    int error;

    memset(&item, 0, sizeof(item));
    if ((error = cursor->get_value(cursor, &item)) == 0) {
        *value = item.data;
        *size = item.size;
    }
    return (error);
}

/* Ends a call for a space: a cursor that failed stands nowhere. */
static int
ended(WT_CURSOR *cursor, int error)
{
    int code;

    code = code_of(error);
    if (error != 0)
        (void)cursor->reset(cursor);
    return (code);
}

FLAT_EXPORT int
flat_reset(struct flat_session *self, size_t space)
{
    WT_CURSOR *cursor;

    cursor = self->cursors[space];
    message[0] = '\0';
    return (code_of(cursor->reset(cursor)));
}

FLAT_EXPORT int
flat_get(struct flat_session *self, size_t space, const void *key, size_t key_size,
  const void **value, size_t *value_size)
{
    WT_CURSOR *cursor;
    int error;

    cursor = self->cursors[space];
    message[0] = '\0';
    set_key(cursor, key, key_size);
    if ((error = cursor->search(cursor)) == 0)
        error = value_of(cursor, value, value_size);
    return (ended(cursor, error));
}

/* Marks a row of the open transaction as one that it changes, and reads it. */
FLAT_EXPORT int
flat_reserve(struct flat_session *self, size_t space, const void *key, size_t key_size,
  const void **value, size_t *value_size)
{
    WT_CURSOR *cursor;
    int error;

    cursor = self->cursors[space];
    message[0] = '\0';
    set_key(cursor, key, key_size);
    if ((error = cursor->reserve(cursor)) == 0)
        error = value_of(cursor, value, value_size);
    return (ended(cursor, error));
}

FLAT_EXPORT int
flat_put(struct flat_session *self, size_t space, const void *key, size_t key_size,
  const void *value, size_t value_size)
{
    WT_CURSOR *cursor;
    WT_ITEM item;

    cursor = self->cursors[space];
    message[0] = '\0';
    set_key(cursor, key, key_size);
    memset(&item, 0, sizeof(item));
    item.data = value;
    item.size = value_size;
    cursor->set_value(cursor, &item);
    return (ended(cursor, cursor->insert(cursor)));
}

/* Removes a row; it is no error when there is none. */
FLAT_EXPORT int
flat_remove(struct flat_session *self, size_t space, const void *key, size_t key_size)
{
    WT_CURSOR *cursor;
    int error;

    cursor = self->cursors[space];
    message[0] = '\0';
    set_key(cursor, key, key_size);
    error = cursor->remove(cursor);
    return (ended(cursor, error == WT_NOTFOUND ? 0 : error));
}

/* Goes to the first row at or after a key. */
FLAT_EXPORT int
flat_seek(struct flat_session *self, size_t space, const void *key, size_t key_size)
{
    WT_CURSOR *cursor;
    int error, place;

    cursor = self->cursors[space];
    message[0] = '\0';
    if (key_size == 0)
        /* From before the first row; every key is at or after the empty one. */
        return (ended(cursor, (error = cursor->reset(cursor)) != 0 ? error : cursor->next(cursor)));
    set_key(cursor, key, key_size);
    if ((error = cursor->search_near(cursor, &place)) == 0 && place < 0)
        error = cursor->next(cursor);
    return (ended(cursor, error));
}

/* Goes to the last row at or before a key. No key is empty, and none is before the empty one. */
FLAT_EXPORT int
flat_seek_back(struct flat_session *self, size_t space, const void *key, size_t key_size)
{
    WT_CURSOR *cursor;
    int error, place;

    cursor = self->cursors[space];
    message[0] = '\0';
    if (key_size == 0)
        return (ended(cursor, (error = cursor->reset(cursor)) != 0 ? error : WT_NOTFOUND));
    set_key(cursor, key, key_size);
    if ((error = cursor->search_near(cursor, &place)) == 0 && place > 0)
        error = cursor->prev(cursor);
    return (ended(cursor, error));
}

FLAT_EXPORT int
flat_prev(struct flat_session *self, size_t space)
{
    WT_CURSOR *cursor;

    cursor = self->cursors[space];
    message[0] = '\0';
    return (ended(cursor, cursor->prev(cursor)));
}

FLAT_EXPORT int
flat_next(struct flat_session *self, size_t space)
{
    WT_CURSOR *cursor;

    cursor = self->cursors[space];
    message[0] = '\0';
    return (ended(cursor, cursor->next(cursor)));
}

/* The row that the space's cursor stands on. */
FLAT_EXPORT int
flat_row(struct flat_session *self, size_t space, const void **key, size_t *key_size,
  const void **value, size_t *value_size)
{
    WT_CURSOR *cursor;
    WT_ITEM item;
    int error;

    cursor = self->cursors[space];
    message[0] = '\0';
    memset(&item, 0, sizeof(item));
    if ((error = cursor->get_key(cursor, &item)) == 0) {
        *key = item.data;
        *key_size = item.size;
        error = value_of(cursor, value, value_size);
    }
    return (ended(cursor, error));
}

/* Calls back with every statistic behind a URI, or of the whole database when it is empty. */
FLAT_EXPORT int
flat_statistics(WT_CONNECTION *connection, const char *uri,
  void (*each)(void *context, const char *name, int64_t value), void *context)
{
    WT_CURSOR *cursor;
    WT_SESSION *session;
    char whole[512];
    const char *name, *printed;
    int64_t value;
    int error, closed;

    message[0] = '\0';
    if ((error = connection->open_session(connection, NULL, NULL, &session)) != 0)
        return (code_of(error));
    (void)snprintf(whole, sizeof(whole), "statistics:%s", uri);
    error = session->open_cursor(session, whole, NULL, "statistics=(fast)", &cursor);
    while (error == 0 && (error = cursor->next(cursor)) == 0)
        if ((error = cursor->get_value(cursor, &name, &printed, &value)) == 0)
            each(context, name, value);
    closed = session->close(session, NULL);
    return (code_of(error == WT_NOTFOUND ? closed : error));
}

/* Calls back with the configuration that a table or file was created with, as the database keeps
 * it. */
FLAT_EXPORT int
flat_metadata(WT_CONNECTION *connection, const char *uri,
  void (*each)(void *context, const char *name, int64_t value), void *context)
{
    WT_CURSOR *cursor;
    WT_SESSION *session;
    const char *config;
    int error, closed;

    message[0] = '\0';
    if ((error = connection->open_session(connection, NULL, NULL, &session)) != 0)
        return (code_of(error));
    if ((error = session->open_cursor(session, "metadata:", NULL, NULL, &cursor)) == 0) {
        cursor->set_key(cursor, uri);
        if ((error = cursor->search(cursor)) == 0 &&
          (error = cursor->get_value(cursor, &config)) == 0)
            each(context, config, 0);
    }
    closed = session->close(session, NULL);
    return (code_of(error != 0 ? error : closed));
}

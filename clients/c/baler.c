/*
 * application threads -> queue -> one thread -> socket -> Baler
 *                          verdicts <- one thread <- socket <- Baler
 *
 * The thread alone uses the socket. Application threads and the thread share the tables, the half of
 * the queue that is being filled and the counts, under one lock; verdicts are read without it.
 *
 * An id of a string holds for the life of the client, so records wait encoded. Each connection gets
 * all strings again, before the first record that can name them.
 */
#define _POSIX_C_SOURCE 200809L

#include "baler.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* First words of what is sent and received. -1 is Kieker's own; the others are those of kdb-v2. */
enum {
    STRING = -1,
    SIGNATURE = -32, /* a request, or its answer */
    BATCH = -33,
    HELLO = -34,
    ERROR = -35,
    PING = -36,
    PONG = -37,
    BATCH_REQUEST = -38,
    SNAPSHOT = -39,
    STATS = -40,
    BYE = -41,
    FRAMED = -42
};

enum { ERROR_VERSION = 1, ERROR_MALFORMED = 2, ERROR_LIMIT = 3, ERROR_SLOT = 4, ERROR_COMMAND = 5 };

enum {
    MAGIC = 0x4B444232,
    MAJOR = 2,
    FEATURE_BATCH = 0x02,
    FEATURES = 0x17, /* push, batch, snapshot, framed */
    MAX_PAIRS = 1 << 20,
    BATCH_PAIRS = 8192,
    /* The largest item and a ping fit. */
    OUT_BYTES = BALER_MAX_RECORD_BYTES + 8192,
    IN_BYTES = 4096
};

enum {
    HELLO_MS = 1000,  /* records wait so long for the answer to Hello */
    LINGER_MS = 1,    /* records are gathered so long, which bounds the wakes of the thread */
    PING_MS = 1000,   /* how often Baler is asked what it has read */
    CONNECT_MS = 10000,
    RETRY_MIN_MS = 100,
    RETRY_MAX_MS = 5000,
    UNANSWERED = 2 /* so many connections end at Hello before one without Hello is tried */
};

/* Different texts, numbered from 0. */
typedef struct table {
    char **texts;
    uint32_t *lengths;
    uint32_t *index; /* by hash: number + 1, or 0; twice as long as texts */
    uint32_t count, capacity, limit;
} table;

/* Records, each behind its length. */
typedef struct half {
    uint8_t *bytes;
    size_t used;
} half;

typedef enum hello { HELLO_NOT_SENT, HELLO_SENT, HELLO_ANSWERED } hello;

typedef struct client {
    baler_client shared; /* the first member, so that a pointer to it is one to the client */
    char *host, *port, *name;
    int is_plain;
    uint32_t max_probes;
    size_t half_bytes;
    pthread_t thread;
    int wake[2]; /* a pipe that ends the thread's waiting */

    pthread_mutex_t lock; /* of the next members */
    table strings, probes;
    half filling;
    int is_woken; /* the thread has been woken and has not taken records since */
    int is_closing;
    int64_t close_at;
    baler_stats stats;

    /* The rest is the thread's alone. */
    half draining;
    size_t sent_at;  /* in draining: the first record that is not completely sent */
    size_t taken_at; /* in draining: the first record that is not in out */
    int64_t take_at, retry_at, retry_ms;
    int unanswered, is_over;

    /* The rest is of one connection. */
    int fd;
    int64_t connected_at, hello_until, ping_at;
    hello hello;
    int is_kieker, is_ended, is_shut; /* without Hello; the last item is in out; and it is sent */
    int32_t peer_features, peer_slots;
    uint32_t registered, requested;
    uint64_t taken, sent, read, dropped_told; /* records in out or before; counts */
    int open_pings, has_ping, has_unknown;
    int64_t ping_nonce;
    int32_t unknown_slot;
    uint8_t out[OUT_BYTES], in[IN_BYTES];
    size_t out_length, out_at, records_at, in_length;
    uint32_t skip, pairs; /* bytes to pass over, and verdicts of a batch that are still to come */
} client;

static int64_t clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int64_t now_ms(void) { return clock_ns(CLOCK_MONOTONIC) / 1000000; }

/* ---- bytes ---- */

static void put(uint8_t *out, uint64_t value, size_t bytes) {
    while (bytes > 0) {
        out[--bytes] = (uint8_t)value;
        value >>= 8;
    }
}

static uint64_t get(const uint8_t *in, size_t bytes) {
    uint64_t value = 0;
    while (bytes-- > 0) value = value << 8 | *in++;
    return value;
}

static int32_t get32(const uint8_t *in) { return (int32_t)get(in, 4); }

/* ---- tables of texts ---- */

static uint32_t hash_of(const char *text, size_t length) {
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    return hash;
}

/* By table 3-7 of the Unicode standard. */
static int is_utf8(const char *text, size_t length) {
    const uint8_t *at = (const uint8_t *)text, *end = at + length;
    while (at < end) {
        uint8_t lead = *at++, low = 0x80, high = 0xBF;
        int more;
        if (lead < 0x80) continue;
        if (lead >= 0xC2 && lead <= 0xDF) more = 1;
        else if (lead >= 0xE0 && lead <= 0xEF) more = 2;
        else if (lead >= 0xF0 && lead <= 0xF4) more = 3;
        else return 0;
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
        for (; more > 0; more--) {
            if (at == end || *at < low || *at > high) return 0;
            at++;
            low = 0x80;
            high = 0xBF;
        }
    }
    return 1;
}

/* Returns the place of a text in the index: that of its number, or the free one. */
static uint32_t *place_of(const table *table, const char *text, size_t length) {
    uint32_t mask = 2 * table->capacity - 1;
    uint32_t at = hash_of(text, length) & mask;
    for (;; at = (at + 1) & mask) {
        uint32_t *place = &table->index[at];
        if (*place == 0) return place;
        if (table->lengths[*place - 1] == length &&
            memcmp(table->texts[*place - 1], text, length) == 0)
            return place;
    }
}

static int grow(table *table) {
    uint32_t capacity = table->capacity == 0 ? 64 : 2 * table->capacity;
    char **texts = realloc(table->texts, capacity * sizeof *texts);
    if (texts != NULL) table->texts = texts;
    uint32_t *lengths = realloc(table->lengths, capacity * sizeof *lengths);
    if (lengths != NULL) table->lengths = lengths;
    uint32_t *index = calloc(2 * (size_t)capacity, sizeof *index);
    if (texts == NULL || lengths == NULL || index == NULL) {
        free(index);
        return 0;
    }
    free(table->index);
    table->index = index;
    table->capacity = capacity;
    for (uint32_t i = 0; i < table->count; i++) *place_of(table, texts[i], lengths[i]) = i + 1;
    return 1;
}

enum { TEXT_INVALID = -1, TEXT_TOO_MANY = -2 };

/* Returns the number of a text, or TEXT_INVALID, or TEXT_TOO_MANY. */
static int32_t number_of(table *table, const char *text) {
    size_t length = strlen(text);
    if (length > BALER_MAX_STRING_BYTES) return TEXT_INVALID;
    if (table->count == table->capacity && !grow(table)) return TEXT_TOO_MANY;
    uint32_t *place = place_of(table, text, length);
    if (*place != 0) return (int32_t)(*place - 1);
    if (!is_utf8(text, length)) return TEXT_INVALID;
    if (table->count >= table->limit) return TEXT_TOO_MANY;
    char *copy = malloc(length + 1);
    if (copy == NULL) return TEXT_TOO_MANY;
    memcpy(copy, text, length + 1);
    table->texts[table->count] = copy;
    table->lengths[table->count] = (uint32_t)length;
    *place = ++table->count;
    return (int32_t)(table->count - 1);
}

static void free_table(table *table) {
    for (uint32_t i = 0; i < table->count; i++) free(table->texts[i]);
    free(table->texts);
    free(table->lengths);
    free(table->index);
}

/* ---- application threads ---- */

/* Ends the thread's waiting. The lock is held. The application's errno stays. */
static void wake(client *client) {
    int saved = errno;
    if (!client->is_woken && write(client->wake[1], "", 1) < 0) {
        /* The pipe is full, so the thread wakes anyway. */
    }
    client->is_woken = 1;
    errno = saved;
}

typedef struct ids {
    table *strings;
    int32_t problem;
} ids;

static int32_t string_id(void *context, const char *text) {
    ids *ids = context;
    int32_t id = number_of(ids->strings, text == NULL ? "" : text);
    if (id < 0) ids->problem = id;
    return id;
}

/* Appends a record to the queue. Returns the count of the drop, or NULL. The lock is held. */
static uint64_t *append(client *client, const char *type, baler_encode encode, const void *record) {
    enum { HEAD = 4 + 4 + 8 }; /* length, type, logging timestamp */
    baler_stats *stats = &client->stats;
    half *half = &client->filling;
    if (client->half_bytes - half->used < HEAD) return &stats->dropped_full;
    size_t room = client->half_bytes - half->used - HEAD;
    size_t limit = BALER_MAX_RECORD_BYTES - HEAD;
    uint8_t *out = half->bytes + half->used;
    ids ids = {&client->strings, 0};
    int32_t type_id = string_id(&ids, type);
    size_t length = 0;
    if (encode != NULL) {
        length = encode(out + HEAD, room < limit ? room : limit, record, string_id, &ids);
        /* Zero bytes say that the record does not fit. */
        if (length == 0 && ids.problem == 0)
            return room < limit ? &stats->dropped_full : &stats->dropped_invalid;
    }
    if (ids.problem == TEXT_INVALID) return &stats->dropped_invalid;
    if (ids.problem == TEXT_TOO_MANY) return &stats->dropped_strings;
    put(out, HEAD - 4 + length, 4);
    put(out + 4, (uint32_t)type_id, 4);
    put(out + 8, (uint64_t)clock_ns(CLOCK_REALTIME), 8);
    half->used += HEAD + length;
    return NULL;
}

int baler_send(baler_client *shared, const char *type, baler_encode encode, const void *record) {
    client *client = (struct client *)shared;
    pthread_mutex_lock(&client->lock);
    client->stats.offered++;
    uint64_t *drop = append(client, type, encode, record);
    if (drop != NULL) {
        ++*drop;
    } else {
        client->stats.waiting++;
        wake(client);
    }
    pthread_mutex_unlock(&client->lock);
    return drop == NULL;
}

int32_t baler_probe(baler_client *shared, const char *signature) {
    client *client = (struct client *)shared;
    pthread_mutex_lock(&client->lock);
    int32_t slot = number_of(&client->probes, signature);
    if (slot >= 0) wake(client);
    pthread_mutex_unlock(&client->lock);
    return slot >= 0 ? slot : (int32_t)client->max_probes;
}

void baler_get_stats(baler_client *shared, baler_stats *stats) {
    client *client = (struct client *)shared;
    pthread_mutex_lock(&client->lock);
    *stats = client->stats;
    pthread_mutex_unlock(&client->lock);
}

/* ---- the thread: sending ---- */

static void put_int(client *client, uint64_t value, size_t bytes) {
    put(client->out + client->out_length, value, bytes);
    client->out_length += bytes;
}

static void put_text(client *client, const char *text, uint32_t length) {
    put_int(client, length, 4);
    memcpy(client->out + client->out_length, text, length);
    client->out_length += length;
}

/* Whether an item of this many bytes and a ping fit into out. */
static int has_room(const client *client, size_t bytes) {
    return client->out_length + bytes + 256 <= OUT_BYTES;
}

static void put_hello(client *client) {
    put_int(client, (uint32_t)HELLO, 4);
    put_int(client, MAGIC, 4);
    put_int(client, MAJOR, 2);
    put_int(client, 0, 2);
    put_int(client, FEATURES, 4);
    put_int(client, client->max_probes, 4);
    put_text(client, client->name, (uint32_t)strlen(client->name));
}

static void put_error(client *client, int32_t code, int32_t slot) {
    put_int(client, (uint32_t)ERROR, 4);
    put_int(client, (uint32_t)code, 4);
    put_int(client, (uint32_t)slot, 4);
    put_int(client, 0, 4);
}

/* Registers strings that this connection does not have. Returns whether it has all of them now. */
static int put_strings(client *client) {
    const table *table = &client->strings;
    for (; client->registered < table->count; client->registered++) {
        uint32_t length = table->lengths[client->registered];
        if (!has_room(client, 12 + (size_t)length)) return 0;
        put_int(client, (uint32_t)STRING, 4);
        put_int(client, client->registered, 4);
        put_text(client, table->texts[client->registered], length);
    }
    return 1;
}

/* Asks for the slots that this connection has not asked for. */
static void put_requests(client *client) {
    const table *table = &client->probes;
    uint32_t end = table->count;
    if (end > (uint32_t)client->peer_slots) end = (uint32_t)client->peer_slots;
    uint32_t first = client->requested;
    size_t count_at = client->out_length + 4;
    int is_batch = end > first + 1 && (client->peer_features & FEATURE_BATCH) != 0;
    if (is_batch) {
        if (!has_room(client, 8 + 8 + (size_t)table->lengths[first])) return;
        put_int(client, (uint32_t)BATCH_REQUEST, 4);
        put_int(client, 0, 4);
    }
    for (; client->requested < end; client->requested++) {
        uint32_t length = table->lengths[client->requested];
        if (!has_room(client, 12 + (size_t)length)) break;
        if (is_batch && client->requested - first == BATCH_PAIRS) break;
        if (!is_batch) put_int(client, (uint32_t)SIGNATURE, 4);
        put_int(client, client->requested, 4);
        put_text(client, table->texts[client->requested], length);
    }
    if (is_batch) put(client->out + count_at, client->requested - first, 4);
}

static size_t length_at(const half *half, size_t at) { return (size_t)get(half->bytes + at, 4); }

static void put_records(client *client) {
    client->records_at = client->out_length;
    while (client->taken_at < client->draining.used) {
        size_t length = length_at(&client->draining, client->taken_at);
        if (!has_room(client, length)) break;
        memcpy(client->out + client->out_length, client->draining.bytes + client->taken_at + 4,
               length);
        client->out_length += length;
        client->taken_at += 4 + length;
        client->taken++;
    }
}

/* Counts the records that the operating system has completely. */
static void account(client *client) {
    uint64_t count = 0;
    while (client->sent_at < client->taken_at) {
        size_t length = length_at(&client->draining, client->sent_at);
        if (client->records_at + length > client->out_at) break;
        client->records_at += length;
        client->sent_at += 4 + length;
        count++;
    }
    client->sent += count;
    pthread_mutex_lock(&client->lock);
    client->stats.sent += count;
    client->stats.waiting -= count;
    pthread_mutex_unlock(&client->lock);
}

static uint64_t dropped(const baler_stats *stats) {
    return stats->dropped_full + stats->dropped_invalid + stats->dropped_strings;
}

/* Asks for a sign that everything before it has been read. The nonce is the number of records. */
static void put_ping(client *client, uint64_t drops, int64_t now) {
    if (drops != client->dropped_told) {
        put_int(client, (uint32_t)STATS, 4);
        put_int(client, 0, 8); /* hits: counting them would cost a probe a write */
        put_int(client, client->requested, 8);
        put_int(client, drops, 8);
        put_int(client, client->requested, 4);
        client->dropped_told = drops;
    }
    put_int(client, (uint32_t)PING, 4);
    put_int(client, client->taken, 8);
    client->open_pings++;
    client->ping_at = now + PING_MS;
}

/* Fills the empty buffer with the next items. */
static void fill(client *client, int64_t now) {
    client->out_length = client->out_at = client->records_at = 0;
    if (client->is_ended) return;
    if (!client->is_kieker && client->hello == HELLO_NOT_SENT) {
        put_hello(client);
        client->hello = HELLO_SENT;
        client->hello_until = now + HELLO_MS;
        return;
    }
    if (client->has_ping) {
        put_int(client, (uint32_t)PONG, 4);
        put_int(client, (uint64_t)client->ping_nonce, 8);
        client->has_ping = 0;
    }
    if (client->has_unknown) put_error(client, ERROR_SLOT, client->unknown_slot);
    client->has_unknown = 0;
    int is_waiting = client->hello == HELLO_SENT && now < client->hello_until;

    pthread_mutex_lock(&client->lock);
    int is_empty = client->taken_at == client->draining.used;
    if (is_empty && now >= client->take_at && !is_waiting) {
        client->is_woken = 0;
        if (client->filling.used > 0) {
            half empty = {client->draining.bytes, 0};
            client->draining = client->filling;
            client->filling = empty;
            client->sent_at = client->taken_at = 0;
            client->take_at = now + LINGER_MS;
        }
    }
    /* The table is complete for the records of draining, but not for those of filling. */
    int has_strings = !is_waiting && put_strings(client);
    if (has_strings && client->hello == HELLO_ANSWERED) put_requests(client);
    int is_last = client->is_closing && client->filling.used == 0;
    uint64_t drops = dropped(&client->stats);
    pthread_mutex_unlock(&client->lock);

    if (has_strings) put_records(client);
    is_last = is_last && client->taken_at == client->draining.used;
    int is_unread = client->taken > client->read || drops != client->dropped_told;
    if (client->hello == HELLO_ANSWERED && is_unread &&
        (is_last || (client->open_pings == 0 && now >= client->ping_at)))
        put_ping(client, drops, now);
    if (is_last && client->hello == HELLO_ANSWERED) {
        put_int(client, (uint32_t)BYE, 4);
        put_int(client, 0, 4);
    }
    client->is_ended = is_last;
}

static void disconnect(client *client) {
    close(client->fd);
    client->fd = -1;
    int64_t now = now_ms();
    /* What is not completely sent is sent again. */
    client->taken_at = client->sent_at;
    client->out_length = client->out_at = 0;
    if (client->hello == HELLO_SENT) client->unanswered++;
    else client->unanswered = 0;
    if (now - client->connected_at > RETRY_MAX_MS) client->retry_ms = RETRY_MIN_MS;
    client->retry_at = now + client->retry_ms;
    client->retry_ms = 2 * client->retry_ms < RETRY_MAX_MS ? 2 * client->retry_ms : RETRY_MAX_MS;
    pthread_mutex_lock(&client->lock);
    client->stats.in_doubt += client->sent - client->read;
    client->stats.is_connected = client->stats.is_adaptive = 0;
    pthread_mutex_unlock(&client->lock);
}

static void flush_out(client *client) {
    ssize_t count = send(client->fd, client->out + client->out_at,
                         client->out_length - client->out_at, MSG_NOSIGNAL);
    if (count >= 0) {
        client->out_at += (size_t)count;
        account(client);
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        disconnect(client);
    }
}

/* ---- the thread: receiving ---- */

/* Ends a connection whose peer breaks the protocol. */
static void refuse(client *client, int32_t code) {
    if (client->out_at == client->out_length) {
        client->out_length = client->out_at = 0;
        put_error(client, code, -1);
        /* The peer learns it if there is room; the connection ends anyway. */
        if (send(client->fd, client->out, client->out_length, MSG_NOSIGNAL) < 0) errno = 0;
    }
    pthread_mutex_lock(&client->lock);
    client->stats.protocol_errors++;
    pthread_mutex_unlock(&client->lock);
    if (code == ERROR_VERSION) client->unanswered = UNANSWERED;
    disconnect(client);
}

static void set_read(client *client, uint64_t count) {
    pthread_mutex_lock(&client->lock);
    client->stats.read += count - client->read;
    pthread_mutex_unlock(&client->lock);
    client->read = count;
}

/* Applies one verdict. Returns 0, or the code of an error. */
static int32_t apply(client *client, const uint8_t *pair) {
    int32_t slot = get32(pair);
    if (pair[4] > 1) return ERROR_MALFORMED;
    if (slot < 0 || (uint32_t)slot >= client->requested) {
        client->has_unknown = 1;
        client->unknown_slot = slot;
        return 0;
    }
    __atomic_store_n(&client->shared.verdicts[slot], pair[4], __ATOMIC_RELAXED);
    pthread_mutex_lock(&client->lock);
    client->stats.updates++;
    pthread_mutex_unlock(&client->lock);
    return 0;
}

/* Returns the bytes of a command without its text or its pairs, or 0 if it is unknown. */
static size_t head_bytes(int32_t command) {
    switch (command) {
    case BYE: return 8;
    case SIGNATURE: return 9;
    case BATCH: case FRAMED: case PING: case PONG: return 12;
    case ERROR: case SNAPSHOT: return 16;
    case HELLO: return 24;
    default: return 0;
    }
}

static int32_t take_text_or_pairs(uint32_t *left, const uint8_t *at, uint32_t limit) {
    int32_t count = get32(at);
    if (count < 0) return ERROR_MALFORMED;
    if ((uint32_t)count > limit) return ERROR_LIMIT;
    *left = (uint32_t)count;
    return 0;
}

/* Obeys one command whose head is complete. Returns 0, or the code of an error. */
static int32_t obey(client *client, const uint8_t *at) {
    int32_t command = get32(at);
    if (client->hello != HELLO_ANSWERED && command != HELLO && command != ERROR)
        return ERROR_MALFORMED;
    switch (command) {
    case SIGNATURE:
        return apply(client, at + 4);
    case BATCH:
        if (get32(at + 4) != SIGNATURE) return ERROR_MALFORMED;
        return take_text_or_pairs(&client->pairs, at + 8, MAX_PAIRS);
    case SNAPSHOT: /* It has every slot that Baler knows; the answers for the others follow. */
        return take_text_or_pairs(&client->pairs, at + 12, MAX_PAIRS);
    case HELLO:
        if (get32(at + 4) != MAGIC || client->hello == HELLO_ANSWERED) return ERROR_MALFORMED;
        if (get(at + 8, 2) != MAJOR) return ERROR_VERSION;
        client->peer_features = get32(at + 12);
        client->peer_slots = get32(at + 16);
        if (client->peer_slots < 0) return ERROR_MALFORMED;
        client->hello = HELLO_ANSWERED;
        pthread_mutex_lock(&client->lock);
        client->stats.is_adaptive = 1;
        pthread_mutex_unlock(&client->lock);
        return take_text_or_pairs(&client->skip, at + 20, BALER_MAX_STRING_BYTES);
    case ERROR:
        pthread_mutex_lock(&client->lock);
        client->stats.last_error = get32(at + 4);
        pthread_mutex_unlock(&client->lock);
        if (get32(at + 4) == ERROR_VERSION) client->unanswered = UNANSWERED;
        return take_text_or_pairs(&client->skip, at + 12, BALER_MAX_STRING_BYTES);
    case PING: /* Only the last one is answered, so that pings take no memory. */
        client->has_ping = 1;
        client->ping_nonce = (int64_t)get(at + 4, 8);
        return 0;
    case PONG: {
        uint64_t count = get(at + 4, 8);
        if (client->open_pings == 0 || count > client->sent || count < client->read)
            return ERROR_MALFORMED;
        client->open_pings--;
        set_read(client, count);
        return 0;
    }
    case FRAMED:
        return take_text_or_pairs(&client->skip, at + 8, MAX_PAIRS);
    default: /* BYE: the connection ends, and the next one follows. */
        return 0;
    }
}

/* Takes what is complete in the input. Returns 0, or the code of an error. */
static int32_t take_input(client *client) {
    size_t at = 0;
    int32_t code = 0;
    while (code == 0) {
        const uint8_t *in = client->in + at;
        size_t left = client->in_length - at;
        if (client->skip > 0) {
            size_t count = client->skip < left ? client->skip : left;
            if (count == 0) break;
            client->skip -= (uint32_t)count;
            at += count;
        } else if (client->pairs > 0) {
            if (left < 5) break;
            code = apply(client, in);
            client->pairs--;
            at += 5;
        } else {
            if (left < 4) break;
            size_t head = head_bytes(get32(in));
            if (head == 0) return ERROR_COMMAND;
            if (left < head) break;
            code = obey(client, in);
            at += head;
        }
    }
    client->in_length -= at;
    memmove(client->in, client->in + at, client->in_length);
    return code;
}

static void receive(client *client) {
    ssize_t count = recv(client->fd, client->in + client->in_length,
                         IN_BYTES - client->in_length, 0);
    if (count < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) disconnect(client);
        return;
    }
    if (count == 0) {
        /* A peer that has not read everything answers the end with a reset. */
        if (client->is_shut) set_read(client, client->sent);
        client->is_over = client->is_shut;
        disconnect(client);
        return;
    }
    client->in_length += (size_t)count;
    if (client->is_kieker) {
        client->in_length = 0; /* Kieker's protocol has no answers. */
        return;
    }
    int32_t code = take_input(client);
    if (code != 0) refuse(client, code);
}

/* ---- the thread: its loop ---- */

/* Waits for the socket, for a wake or for a time. Returns what the socket is ready for. */
static short await(client *client, int fd, short events, int64_t until) {
    struct pollfd polled[2] = {{client->wake[0], POLLIN, 0}, {fd, events, 0}};
    int64_t wait = until - now_ms();
    if (wait < 0) wait = 0;
    if (wait > 60000) wait = 60000;
    if (poll(polled, fd < 0 ? 1 : 2, (int)wait) <= 0) return 0;
    char bytes[64];
    if (polled[0].revents != 0 && read(client->wake[0], bytes, sizeof bytes) < 0) errno = 0;
    return fd < 0 ? 0 : polled[1].revents;
}

/* Returns the time at which the client is closed at the latest. */
static int64_t close_time(client *client) {
    pthread_mutex_lock(&client->lock);
    int64_t time = client->is_closing ? client->close_at : INT64_MAX;
    pthread_mutex_unlock(&client->lock);
    return time;
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

static int no_wait(int fd) {
    return fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

/* Connects to one address. Returns the socket, or -1. */
static int dial(client *client, const struct addrinfo *address) {
    int fd = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
    if (fd < 0) return -1;
    int64_t end = now_ms() + CONNECT_MS;
    int problem = 1;
    if (no_wait(fd)) problem = connect(fd, address->ai_addr, address->ai_addrlen) < 0 ? errno : 0;
    if (problem == EINPROGRESS) {
        short ready = 0;
        int64_t until;
        while (ready == 0 && now_ms() < (until = earlier(end, close_time(client))))
            ready = await(client, fd, POLLOUT, until);
        socklen_t size = sizeof problem;
        if (ready == 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size) < 0) problem = 1;
    }
    if (problem == 0) return fd;
    close(fd);
    return -1;
}

static void connect_once(client *client) {
    struct addrinfo hints = {0}, *addresses = NULL;
    hints.ai_socktype = SOCK_STREAM;
    int fd = -1;
    if (getaddrinfo(client->host, client->port, &hints, &addresses) == 0) {
        for (struct addrinfo *it = addresses; it != NULL && fd < 0; it = it->ai_next)
            fd = dial(client, it);
        freeaddrinfo(addresses);
    }
    client->connected_at = now_ms();
    if (fd < 0) {
        client->retry_at = client->connected_at + client->retry_ms;
        client->retry_ms =
            2 * client->retry_ms < RETRY_MAX_MS ? 2 * client->retry_ms : RETRY_MAX_MS;
        return;
    }
    client->fd = fd;
    client->hello = HELLO_NOT_SENT;
    client->is_kieker = client->is_plain || client->unanswered >= UNANSWERED;
    client->is_ended = client->is_shut = client->open_pings = 0;
    client->has_ping = client->has_unknown = 0;
    client->registered = client->requested = client->skip = client->pairs = 0;
    client->taken = client->sent = client->read = client->dropped_told = 0;
    client->in_length = 0;
    client->ping_at = client->connected_at;
    pthread_mutex_lock(&client->lock);
    client->stats.connections++;
    client->stats.is_connected = 1;
    pthread_mutex_unlock(&client->lock);
}

/* Sends and receives once, or waits until that is possible. */
static void serve(client *client, int64_t close_at) {
    int64_t now = now_ms();
    if (client->out_at == client->out_length) fill(client, now);
    int is_sent = client->out_at == client->out_length;
    if (client->is_ended && is_sent && !client->is_shut) {
        shutdown(client->fd, SHUT_WR);
        client->is_shut = 1;
    }
    int64_t until = close_at;
    if (client->hello == HELLO_SENT && now < client->hello_until)
        until = earlier(until, client->hello_until);
    else if (now < client->take_at)
        until = earlier(until, client->take_at);
    else if (is_sent && !client->is_ended && client->hello == HELLO_ANSWERED &&
             client->taken > client->read && client->open_pings == 0)
        until = earlier(until, client->ping_at);
    short ready = await(client, client->fd, is_sent ? POLLIN : POLLIN | POLLOUT, until);
    if (ready & (POLLIN | POLLHUP | POLLERR)) receive(client);
    if (client->fd >= 0 && !is_sent && ready & POLLOUT) flush_out(client);
}

static void *run(void *argument) {
    client *client = argument;
    while (!client->is_over) {
        int64_t close_at = close_time(client);
        if (now_ms() >= close_at) break;
        if (client->fd >= 0) {
            serve(client, close_at);
            continue;
        }
        pthread_mutex_lock(&client->lock);
        client->is_over = client->is_closing && client->stats.waiting == 0;
        pthread_mutex_unlock(&client->lock);
        if (now_ms() < client->retry_at) await(client, -1, 0, earlier(close_at, client->retry_at));
        else if (!client->is_over) connect_once(client);
    }
    if (client->fd >= 0) disconnect(client);
    return NULL;
}

/* ---- opening and closing ---- */

static char *copy_text(const char *text, size_t length) {
    char *copy = malloc(length + 1);
    if (copy == NULL) return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

/* Reads kieker+tcp://HOST:PORT, where HOST may be [an IPv6 address]. */
static int parse_uri(client *client, const char *uri) {
    static const char scheme[] = "kieker+tcp://";
    if (strncmp(uri, scheme, sizeof scheme - 1) != 0) return 0;
    uri += sizeof scheme - 1;
    const char *colon = strrchr(uri, ':');
    if (colon == NULL || colon == uri) return 0;
    size_t digits = strspn(colon + 1, "0123456789");
    if (digits == 0 || digits > 5 || colon[1 + digits] != '\0' || atoi(colon + 1) > 65535)
        return 0;
    size_t length = (size_t)(colon - uri);
    if (*uri == '[') {
        if (length < 3 || colon[-1] != ']') return 0;
        uri++;
        length -= 2;
    }
    client->host = copy_text(uri, length);
    client->port = copy_text(colon + 1, digits);
    return client->host != NULL && client->port != NULL;
}

static void free_client(client *client) {
    for (int i = 0; i < 2; i++)
        if (client->wake[i] >= 0) close(client->wake[i]);
    free_table(&client->strings);
    free_table(&client->probes);
    free(client->filling.bytes);
    free(client->draining.bytes);
    free(client->shared.verdicts);
    free(client->host);
    free(client->port);
    free(client->name);
    pthread_mutex_destroy(&client->lock);
    free(client);
}

/* Starts the thread with all signals blocked, so that the application's handlers run elsewhere. */
static int start(client *client) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int problem = pthread_create(&client->thread, NULL, run, client);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem == 0;
}

baler_client *baler_open(const char *uri, const baler_options *options) {
    static const baler_options defaults;
    if (options == NULL) options = &defaults;
    client *client = calloc(1, sizeof *client);
    if (client == NULL) return NULL;
    const char *name = options->name != NULL ? options->name : "c";
    size_t length = strlen(name);
    client->wake[0] = client->wake[1] = client->fd = -1;
    client->retry_ms = RETRY_MIN_MS;
    client->is_plain = options->plain;
    client->half_bytes = (options->queue_bytes != 0 ? options->queue_bytes : 1 << 20) / 2;
    client->strings.limit = options->max_strings != 0 ? options->max_strings : 65536;
    client->max_probes = options->max_probes != 0 ? options->max_probes : 65536;
    if (client->max_probes > MAX_PAIRS) client->max_probes = MAX_PAIRS;
    client->probes.limit = client->max_probes;
    client->filling.bytes = malloc(client->half_bytes);
    client->draining.bytes = malloc(client->half_bytes);
    client->name = copy_text(name, length);
    /* The last one stays active; it is that of signatures without a slot. */
    client->shared.verdicts = malloc((size_t)client->max_probes + 1);
    int is_ready = client->filling.bytes != NULL && client->draining.bytes != NULL &&
                   client->name != NULL && client->shared.verdicts != NULL && length <= 1024 &&
                   is_utf8(name, length) && parse_uri(client, uri) && pipe(client->wake) == 0 &&
                   no_wait(client->wake[0]) && no_wait(client->wake[1]);
    pthread_mutex_init(&client->lock, NULL);
    if (client->shared.verdicts != NULL)
        memset(client->shared.verdicts, 1, (size_t)client->max_probes + 1);
    if (is_ready && start(client)) return &client->shared;
    free_client(client);
    return NULL;
}

void baler_close(baler_client *shared, int timeout_ms, baler_stats *stats) {
    client *client = (struct client *)shared;
    pthread_mutex_lock(&client->lock);
    client->is_closing = 1;
    client->close_at = now_ms() + timeout_ms;
    client->is_woken = 0;
    wake(client);
    pthread_mutex_unlock(&client->lock);
    pthread_join(client->thread, NULL);
    client->stats.dropped_closed = client->stats.waiting;
    client->stats.waiting = 0;
    if (stats != NULL) *stats = client->stats;
    free_client(client);
}

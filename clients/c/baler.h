/*
 * Sends Kieker's records to Baler over kieker+tcp, and lets Baler switch probes off and on.
 *
 * README.md has a complete example, and says which records can be lost.
 * All functions may be called by any thread. None of them waits for the network, except baler_close.
 */
#ifndef BALER_H
#define BALER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the id of a string. `baler irl generate` has the same definition in its files. */
#ifndef BALER_STRING_ID
#define BALER_STRING_ID
typedef int32_t (*baler_string_id)(void *context, const char *text);
#endif

/* Writes the fields of a record. Returns the number of bytes, 0 if the capacity is too small. */
typedef size_t (*baler_encode)(uint8_t *out, size_t capacity, const void *record, baler_string_id id,
                               void *context);

enum {
    /* A longer record or string is dropped and counted. */
    BALER_MAX_RECORD_BYTES = 65536,
    BALER_MAX_STRING_BYTES = 65536
};

/* Zero selects the default of each. */
typedef struct baler_options {
    const char *name;    /* of the program, for the list of connected programs; default "c" */
    size_t queue_bytes;  /* most bytes of records that wait; default 1 MiB */
    uint32_t max_strings; /* most different strings, names of types included; default 65,536 */
    uint32_t max_probes; /* most probes that can be switched; default 65,536 */
    int plain;           /* not 0: no probe is switched, and every byte is Kieker's own protocol */
} baler_options;

/* offered = waiting + sent + all dropped. When closed, waiting is 0, and sent = read + in_doubt. */
typedef struct baler_stats {
    uint64_t offered;         /* calls of baler_send */
    uint64_t waiting;         /* in the queue, or not completely sent */
    uint64_t sent;            /* the operating system has all bytes; they can still be lost */
    uint64_t read;            /* of sent: Baler says that it has read them */
    uint64_t in_doubt;        /* of sent: the connection ended before Baler said so */
    uint64_t dropped_full;    /* the queue was full */
    uint64_t dropped_invalid; /* a record or string is too long, or a string is not UTF-8 */
    uint64_t dropped_strings; /* there are too many different strings */
    uint64_t dropped_closed;  /* the time of baler_close was over */
    uint64_t connections;     /* successful attempts to connect */
    uint64_t updates;         /* verdicts that came, also if they changed nothing */
    uint64_t protocol_errors; /* connections that ended because the peer sent wrong bytes */
    int32_t last_error;       /* code of the peer's last error message, 0 for none */
    int is_connected;
    int is_adaptive; /* the peer switches probes */
} baler_stats;

/* The members are private. They are here because baler_is_active reads them without a call. */
typedef struct baler_client {
    uint8_t *verdicts;
} baler_client;

/*
 * Starts a client of kieker+tcp://HOST:PORT. options may be NULL.
 * Returns NULL if the address is wrong, or memory or threads are exhausted. It does not wait for the
 * connection. The child of a fork needs a client of its own.
 */
baler_client *baler_open(const char *uri, const baler_options *options);

/*
 * Sends the records that wait, for at most timeout_ms, and frees the client. No other thread may use
 * it any more. A resolver of names that hangs can make it last longer. stats may be NULL.
 */
void baler_close(baler_client *client, int timeout_ms, baler_stats *stats);

/* Copies a record into the queue. Returns 1, or 0 if it is dropped. encode is NULL for a type without
 * fields. The logging timestamp is the time of this call. */
int baler_send(baler_client *client, const char *type, baler_encode encode, const void *record);

/*
 * Returns the slot of a signature, the same for the same signature. Call it once for each operation.
 * A slot is active until Baler says otherwise. A signature that is too long, not UTF-8, or beyond
 * max_probes gets a slot that is always active.
 */
int32_t baler_probe(baler_client *client, const char *signature);

/* Whether the probe records. This is one relaxed load. The last verdict holds without a connection. */
static inline int baler_is_active(const baler_client *client, int32_t slot) {
    return __atomic_load_n(&client->verdicts[slot], __ATOMIC_RELAXED);
}

/* Copies the counts up to now. */
void baler_get_stats(baler_client *client, baler_stats *stats);

#ifdef __cplusplus
}
#endif

#endif

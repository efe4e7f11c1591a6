/*
 * Runs a client by commands on standard input, for the tests that all clients share
 * (clients/tests/suite.py). Each command has one line of answer.
 *
 * open URI QUEUE_BYTES MAX_STRINGS MAX_PROBES PLAIN | probe SIGNATURE | active SLOT
 * send TEXT NUMBER | empty | flood THREADS COUNT | stats | close TIMEOUT_MS
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baler.h"

/* As `baler irl generate --language c` writes it. */
#define BEFORE_TYPE "kieker.common.record.flow.trace.operation.BeforeOperationEvent"

typedef struct before {
    int64_t timestamp, trace_id;
    int32_t order_index;
    const char *operation, *class_name;
} before;

static uint8_t *put(uint8_t *out, uint64_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; i--) *out++ = (uint8_t)(value >> (8 * i));
    return out;
}

static size_t before_encode(uint8_t *out, size_t capacity, const void *record, baler_string_id id,
                            void *context) {
    const before *it = record;
    if (capacity < 28) return 0;
    out = put(out, (uint64_t)it->timestamp, 8);
    out = put(out, (uint64_t)it->trace_id, 8);
    out = put(out, (uint32_t)it->order_index, 4);
    out = put(out, (uint32_t)id(context, it->operation), 4);
    put(out, (uint32_t)id(context, it->class_name), 4);
    return 28;
}

static baler_client *client;
static int count;

static int send_one(const char *text, int number) {
    before record = {1000 + number, 7, number, text, "com.shop.Cart"};
    return baler_send(client, BEFORE_TYPE, before_encode, &record);
}

/* Sends, asks, and registers beside other threads. */
static void *flood(void *argument) {
    int thread = *(int *)argument;
    char text[64];
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "public void t%d.m%d()", thread, i % 50);
        int32_t slot = baler_probe(client, text);
        if (baler_is_active(client, slot)) send_one(text, i);
    }
    return NULL;
}

static void flood_all(int threads) {
    pthread_t ids[16];
    int numbers[16];
    for (int i = 0; i < threads; i++) {
        numbers[i] = i;
        pthread_create(&ids[i], NULL, flood, &numbers[i]);
    }
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
}

static void print(const baler_stats *it) {
#define FIELD(name) printf("\"" #name "\": %lld, ", (long long)it->name)
    printf("{");
    FIELD(offered); FIELD(waiting); FIELD(sent); FIELD(read); FIELD(in_doubt);
    FIELD(dropped_full); FIELD(dropped_invalid); FIELD(dropped_strings); FIELD(dropped_closed);
    FIELD(connections); FIELD(updates); FIELD(protocol_errors); FIELD(last_error);
    FIELD(is_connected);
    printf("\"is_adaptive\": %d}\n", it->is_adaptive);
}

int main(void) {
    static char line[200000], text[200000];
    baler_stats stats;
    int number, threads;
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        baler_options options = {.name = "test"};
        unsigned long queue;
        if (sscanf(line, "open %199999s %lu %u %u %d", text, &queue, &options.max_strings,
                   &options.max_probes, &options.plain) == 5) {
            options.queue_bytes = queue;
            client = baler_open(text, &options);
            printf("%d\n", client != NULL);
        } else if (strncmp(line, "probe ", 6) == 0) {
            printf("%d\n", (int)baler_probe(client, line + 6));
        } else if (sscanf(line, "active %d", &number) == 1) {
            printf("%d\n", baler_is_active(client, number));
        } else if (sscanf(line, "send %199999s %d", text, &number) == 2) {
            printf("%d\n", send_one(text, number));
        } else if (strcmp(line, "empty") == 0) {
            printf("%d\n", baler_send(client, "kieker.common.record.misc.EmptyRecord", NULL, NULL));
        } else if (sscanf(line, "flood %d %d", &threads, &count) == 2) {
            flood_all(threads);
            printf("1\n");
        } else if (strcmp(line, "stats") == 0) {
            baler_get_stats(client, &stats);
            print(&stats);
        } else if (sscanf(line, "close %d", &number) == 1) {
            baler_close(client, number, &stats);
            print(&stats);
        } else {
            return 2;
        }
        fflush(stdout);
    }
    return 0;
}

/*
 * Visits a cart, and checks its health, a hundred times a second, until standard input ends.
 * docs/adaptive.md has the commands.
 */
#define _POSIX_C_SOURCE 200809L

#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "baler.h"
#include "com_shop_Visit.h"

#define CART "public void com.shop.Cart.add(int)"
#define CHECK "public void com.health.CartMonitor.check()"

static baler_client *client;

static void visit(int32_t slot, const char *operation) {
    if (!baler_is_active(client, slot)) return;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    com_shop_Visit record = {
        .timestamp = now.tv_sec * INT64_C(1000000000) + now.tv_nsec,
        .operation = operation,
        .items = 1,
    };
    baler_send(client, com_shop_Visit_TYPE, com_shop_Visit_encode, &record);
}

int main(int argc, char **argv) {
    baler_options options = {.name = "shop in C"};
    client = baler_open(argc > 1 ? argv[1] : "kieker+tcp://127.0.0.1:9876", &options);
    if (client == NULL) return 1;
    int32_t cart = baler_probe(client, CART), check = baler_probe(client, CHECK);
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (poll(&input, 1, 10) == 0) {
        visit(cart, CART);
        visit(check, CHECK);
    }
    baler_stats stats;
    baler_close(client, 5000, &stats);
    printf("%llu of %llu records read\n", (unsigned long long)stats.read,
           (unsigned long long)stats.offered);
    return stats.read == stats.offered ? 0 : 1;
}

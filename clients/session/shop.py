"""Visits a shelf, and checks its health, a hundred times a second, until standard input ends.

docs/adaptive.md has the commands.
"""

import select
import sys
import time

from baler_client import Client
from com_shop import Visit

SHELF = "public void com.shop.Shelf.take(int)"
CHECK = "public void com.health.ShelfMonitor.check()"

client = Client(sys.argv[1] if len(sys.argv) > 1 else "kieker+tcp://127.0.0.1:9876", name="shop in Python")
slots = {operation: client.probe(operation) for operation in (SHELF, CHECK)}
while not select.select([sys.stdin], [], [], 0.01)[0]:
    for operation, slot in slots.items():
        if client.is_active(slot):
            client.send(Visit(time.time_ns(), operation, 1))
stats = client.close(timeout=5)
print(f"{stats.read} of {stats.offered} records read")
sys.exit(stats.read != stats.offered)

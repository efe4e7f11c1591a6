"""What every client does, over a scripted peer and over the program `baler`."""

import struct
import time

from peer import Peer, Receiver, hello, wait_for

NO_BATCH = hello(features=0x15)


def numbers(items):
    return [item[2] for item in items if item[0] == "record"]


class Suite:
    """A test case has `open`, which returns a client; see peer.py."""

    def start(self, uri, **options):
        client = self.open(uri, **options)
        self.addCleanup(client.end)
        return client

    def pair(self, answer=None, peer_options=None, **options):
        """Returns a peer, a client of it, and their connection."""
        peer = Peer(**(peer_options or {}))
        self.addCleanup(peer.close)
        client = self.start(peer.uri, **options)
        return peer, client, peer.accept(answer)

    def assert_adds_up(self, stats):
        dropped = sum(count for name, count in stats.items() if name.startswith("dropped"))
        self.assertEqual(stats["offered"], stats["sent"] + dropped, stats)
        self.assertEqual(stats["sent"], stats["read"] + stats["in_doubt"], stats)
        self.assertEqual(stats["waiting"], 0)

    # ---- bytes ----

    def test_bytes_are_those_of_the_specification(self):
        _, client, connection = self.pair()
        greeting = "ffffffde 4b444232 0002 0000 00000017 00010000 00000004 74657374"
        self.assertEqual(connection.take(28), bytes.fromhex(greeting))
        connection.send(NO_BATCH)
        for name in ["s.0", "s.1", "s.2", "s.3", "s.4", "a.b", "c.d"]:
            slot = client.probe(name)
            request = connection.take(15)
            self.assertEqual(request, struct.pack(">iii", -32, slot, 3) + name.encode())
            if name == "a.b":
                self.assertEqual(request.hex(), "ffffffe0" "00000005" "00000003" "612e62")
        self.assertEqual(client.probe("a.b"), 5, "the same slot")
        verdicts = lambda: [client.active(slot) for slot in range(7)]  # noqa: E731
        self.assertEqual(verdicts(), [True] * 7)
        steps = [
            ("ffffffe0 00000005 00", [True] * 5 + [False, True]),
            ("ffffffe0 00000005 01", [True] * 7),
            ("ffffffdf ffffffe0 00000002 00000005 00 00000006 01", [True] * 5 + [False, True]),
            ("ffffffdf ffffffe0 00000000", [True] * 5 + [False, True]),
            ("ffffffd9 0000000000000009 00000002 00000005 01 00000006 00", [True] * 6 + [False]),
            # A framed command of the future, with a length.
            ("ffffffd6 ffffffc1 00000003 616263 ffffffe0 00000000 00", [False] + [True] * 5 + [False]),
        ]
        for data, expected in steps:
            connection.send(data)
            wait_for(data, lambda: verdicts() == expected)
        for byte in bytes.fromhex("ffffffdf ffffffe0 00000002 00000005 00 00000006 01"):
            connection.send(bytes([byte]))
        wait_for("a torn batch", lambda: verdicts() == [False] + [True] * 4 + [False, True])
        connection.send("ffffffdc 00000000 00000102")
        self.assertEqual(connection.take(12).hex(), "ffffffdb" "0000000000000102")
        self.assertEqual(client.stats()["updates"], 9)

    def test_records_are_those_of_kieker(self):
        _, client, connection = self.pair(plain=1)
        before = time.time_ns()
        self.assertTrue(client.send("pay-ä", 3))
        head = "ffffffff 00000000 0000003e"
        name = b"kieker.common.record.flow.trace.operation.BeforeOperationEvent"
        self.assertEqual(connection.take(74), bytes.fromhex(head) + name)
        texts = "ffffffff 00000001 00000006" + b"pay-\xc3\xa4".hex()
        texts += "ffffffff 00000002 0000000d" + b"com.shop.Cart".hex()
        self.assertEqual(connection.take(43), bytes.fromhex(texts))
        self.assertEqual(connection.take(4).hex(), "00000000")
        self.assertLess(abs(connection.ints("q")[0] - before), 10**11)
        fields = "00000000000003eb 0000000000000007 00000003 00000001 00000002"
        self.assertEqual(connection.take(28), bytes.fromhex(fields))
        self.assertTrue(client.send_empty())
        self.assertEqual(connection.next("empty"), ("empty",))

    def test_many_signatures_go_in_batches(self):
        peer = Peer()
        self.addCleanup(peer.close)
        client = self.start(peer.uri)
        names = [f"public void shop.m{i}()" for i in range(9000)]
        for name in names:
            client.probe(name)
        connection = peer.accept(hello())
        found = []
        while len(found) < len(names):
            kind, *rest = connection.next("batch", "request")
            found += rest[0] if kind == "batch" else [tuple(rest)]
        self.assertEqual(found, list(enumerate(names)))
        pairs = b"".join(struct.pack(">iB", slot, slot % 2) for slot in range(9000))
        connection.send(struct.pack(">iii", -33, -32, 9000) + pairs)
        wait_for("all verdicts", lambda: client.stats()["updates"] == 9000)
        self.assertEqual([client.active(slot) for slot in (0, 1, 8998, 8999)], [False, True] * 2)

    # ---- peers without the protocol ----

    def test_silent_peer_gets_records_and_all_probes_stay_active(self):
        _, client, connection = self.pair()
        slot = client.probe("a.b")
        client.send("a.b", 1)
        self.assertEqual(connection.item()[0], "hello")
        self.assertEqual(connection.next("record"), ("record", "a.b", 1))
        self.assertTrue(client.active(slot))
        self.assertFalse(client.stats()["is_adaptive"])

    def test_peer_that_closes_at_hello_gets_no_hello_and_every_record(self):
        peer, client, connection = self.pair()
        for number in range(100):
            client.send("a.b", number)
        connection.next("hello")
        connection.reset()
        connection = peer.accept()
        connection.next("hello")
        connection.socket.close()
        connection = peer.accept()
        self.assertEqual(connection.item()[0], "string")
        got = [connection.next("record")[2] for _ in range(100)]
        self.assertEqual(got, list(range(100)))
        self.assertEqual(client.stats()["in_doubt"], 0)
        # A successor of this peer may have the protocol.
        connection.socket.close()
        self.assertEqual(peer.accept().item()[0], "hello")

    def test_other_version_is_refused_and_gets_records(self):
        peer, client, connection = self.pair(hello(major=3))
        self.assertEqual(connection.next("error"), ("error", 1, -1, ""))
        client.send("a.b", 1)
        self.assertEqual(peer.accept().item()[0], "string")

    # ---- acknowledgement and connections that break ----

    def test_close_sends_all_and_counts_what_is_read(self):
        _, client, connection = self.pair(hello())
        for number in range(1000):
            client.send(f"op{number % 7}", number)
        client.probe("a.b")
        result = self.in_background(client.close)
        items = connection.read_to_end()
        self.assertEqual(numbers(items), list(range(1000)))
        self.assertEqual([item[0] for item in items[-2:]], ["ping", "bye"])
        stats = result()
        self.assert_adds_up(stats)
        self.assertEqual(stats["read"], 1000)

    def test_pong_says_what_is_read_and_a_break_leaves_the_rest_in_doubt(self):
        peer, client, connection = self.pair(hello())
        for number in range(3):
            client.send("a", number)
        # The first ping may come before the last of these records.
        while (ping := connection.next("ping"))[1] < 3:
            connection.send(struct.pack(">iq", -37, ping[1]))
        connection.send(struct.pack(">iq", -37, 3))
        wait_for("the acknowledgement", lambda: client.stats()["read"] == 3)
        for number in range(3, 8):
            client.send("b", number)
        while connection.next("record")[2] != 7:
            pass
        wait_for("the account", lambda: client.stats()["sent"] == 8)
        connection.reset()
        connection = peer.accept(hello())
        wait_for("the break", lambda: client.stats()["in_doubt"] == 5)
        client.send("b", 8)
        self.assertEqual(connection.next("record"), ("record", "b", 8), "strings come again")

    def test_records_that_are_not_completely_sent_go_to_the_next_connection(self):
        peer, client, connection = self.pair(hello(), {"receive_buffer": 4096}, queue_bytes=64 << 20)
        sequence = self.fill_buffers(client)
        connection.reset()
        connection = peer.accept(hello())
        result = self.in_background(client.close)
        got = numbers(connection.read_to_end())
        stats = result()
        self.assert_adds_up(stats)
        self.assertEqual((stats["sent"], stats["connections"]), (len(sequence), 2))
        self.assertGreater(stats["in_doubt"], 0)
        self.assertTrue(got == sequence[stats["in_doubt"] :], "none is missing, none comes twice")

    def test_verdicts_hold_without_a_connection_and_are_asked_for_again(self):
        peer, client, connection = self.pair(NO_BATCH)
        first, second = client.probe("a"), client.probe("b")
        connection.next("request")
        connection.next("request")
        connection.send(struct.pack(">iiB", -32, first, 0))
        wait_for("the verdict", lambda: not client.active(first))
        connection.reset()
        wait_for("the break", lambda: not client.stats()["is_connected"])
        self.assertEqual((client.active(first), client.active(second)), (False, True))
        connection = peer.accept(hello())
        self.assertEqual(connection.next("batch"), ("batch", [(0, "a"), (1, "b")]))
        self.assertFalse(client.active(first))
        connection.send(struct.pack(">iiiiBiB", -33, -32, 2, first, 1, second, 0))
        wait_for("the batch", lambda: client.active(first) and not client.active(second))

    def test_peer_that_never_reads_holds_nobody_and_losses_are_counted(self):
        _, client, connection = self.pair(hello(), {"receive_buffer": 4096}, queue_bytes=200_000)
        count = len(self.fill_buffers(client))
        self.assertGreater(client.stats()["dropped_full"], 0)
        began = time.monotonic()
        stats = client.close(0.3)
        self.assertLess(time.monotonic() - began, 10)
        self.assert_adds_up(stats)
        self.assertEqual(stats["offered"], count)
        self.assertGreater(stats["dropped_closed"], 0)
        self.assertEqual(stats["read"], 0)
        connection.socket.close()

    def test_without_a_peer_records_wait_up_to_a_bound(self):
        peer = Peer()
        peer.close()
        client = self.start(peer.uri, queue_bytes=4096)
        # A record takes 40 bytes, in C with its length 44; half of the queue is filled.
        sent = sum(client.send("a", number) for number in range(100))
        self.assertIn(sent, (46, 51))
        stats = client.close(0.2)
        self.assert_adds_up(stats)
        self.assertEqual((stats["dropped_full"], stats["dropped_closed"]), (100 - sent, sent))
        self.assertEqual(stats["connections"], 0)

    def test_drops_are_reported_to_the_peer(self):
        _, client, connection = self.pair(hello(), max_strings=3)
        self.assertTrue(client.send("a", 1))
        self.assertFalse(client.send("b", 2), "a fourth string")
        self.assertFalse(client.send("x" * 70_000, 3))
        self.assertFalse(client.send("\udcff", 4), "not UTF-8")
        self.assertTrue(client.send("a", 5))
        stats = client.stats()
        self.assertEqual((stats["dropped_strings"], stats["dropped_invalid"]), (1, 2))
        while (item := connection.next("stats", "ping"))[0] == "ping" or item[3] < 3:
            if item[0] == "ping":
                connection.send(struct.pack(">iq", -37, item[1]))
        self.assertEqual(item, ("stats", 0, 0, 3, 0))

    # ---- hostile peers ----

    def test_wrong_bytes_end_the_connection_and_the_next_one_works(self):
        long = struct.pack(">ii", -34, 0x4B444232) + bytes(12) + struct.pack(">i", 1 << 30)
        wrong = [
            (5, "ffffff00"), (5, "00000000"), (5, "ffffffff"), (5, "ffffffd8"),
            (2, "ffffffe0 00000000 02"), (2, "ffffffdf ffffffdf 00000001"),
            (2, "ffffffdf ffffffe0 ffffffff"), (3, "ffffffdf ffffffe0 7fffffff"),
            (3, "ffffffd9 0000000000000000 00100001"), (2, "ffffffdb 0000000000000000"),
            (2, hello().hex()), (3, "ffffffdd 00000008 ffffffff 00010001"), (2, long.hex()),
        ]  # fmt: skip
        for code, data in wrong:
            peer, client, connection = self.pair(hello())
            client.probe("a")
            connection.next("request")
            connection.send(data)
            self.assertEqual(connection.next("error"), ("error", code, -1, ""), data)
            connection = peer.accept(hello())
            self.assertEqual(client.stats()["protocol_errors"], 1)
            client.send("a", 1)
            self.assertEqual(connection.next("record"), ("record", "a", 1))
            client.end()

    def test_bytes_before_hello_are_refused(self):
        _, client, connection = self.pair()
        connection.next("hello")
        connection.send("ffffffe0 00000000 00")
        self.assertEqual(connection.next("error"), ("error", 2, -1, ""))

    def test_unknown_slot_is_reported_and_the_connection_stays(self):
        _, client, connection = self.pair(hello())
        connection.send("ffffffe0 00000009 00")
        self.assertEqual(connection.next("error"), ("error", 4, 9, ""))
        client.send("a", 1)
        self.assertEqual(connection.next("record"), ("record", "a", 1))

    def test_probes_beyond_a_limit_stay_active(self):
        _, client, connection = self.pair(hello(slots=1), max_probes=2)
        slots = [client.probe(name) for name in ("a", "b", "c", "x" * 70_000)]
        self.assertEqual(slots, [0, 1, 2, 2])
        self.assertEqual(connection.next("request", "batch"), ("request", 0, "a"))
        connection.send("ffffffdf ffffffe0 00000003 00000000 00 00000001 00 00000002 00")
        wait_for("the verdict", lambda: not client.active(0))
        self.assertEqual([client.active(slot) for slot in (1, 2)], [True, True])
        self.assertEqual(connection.next("error", "request")[0], "error")

    def test_wrong_addresses_are_refused(self):
        for uri in ["tcp://a:1", "kieker+tcp://a", "kieker+tcp://:1", "kieker+tcp://a:b",
                    "kieker+tcp://a:1?x=y", "kieker+tcp://a:70000", "kieker+tcp://[::1:5"]:  # fmt: skip
            with self.assertRaises(ValueError, msg=uri):
                self.open(uri)

    # ---- threads, and the program ----

    def test_threads_send_while_verdicts_come(self):
        _, client, connection = self.pair(hello(), queue_bytes=16 << 20)

        def answer():
            """Switches every slot off and on again as soon as it is known, and counts records."""
            count, known = 0, 0
            while (item := connection.item())[0] != "end":
                count += item[0] == "record"
                if item[0] == "ping":
                    connection.send(struct.pack(">iq", -37, item[1]))
                known += len(item[1]) if item[0] == "batch" else item[0] == "request"
                if item[0] in ("batch", "request"):
                    for verdict in (0, 1):
                        pairs = [struct.pack(">iB", slot, verdict) for slot in range(known)]
                        head = struct.pack(">iii", -33, -32, known)
                        connection.send(head + b"".join(pairs))
            connection.socket.close()
            return count

        received = self.in_background(answer)
        client.flood(4, 20_000 if self.is_fast else 3_000)
        stats = client.close()
        self.assert_adds_up(stats)
        self.assertEqual(received(), stats["read"])
        self.assertGreater(stats["updates"], 100)

    def test_baler_receives_every_record(self):
        self.send_to_baler(plain=1)

    def test_baler_says_which_records_it_has_read(self):
        self.assertEqual(self.send_to_baler(plain=0)["read"], 5000)

    def test_baler_switches_probes(self):
        receiver = Receiver(1500)
        self.addCleanup(receiver.end)
        client = self.start(receiver.uri)
        slots = [client.probe(f"public void t1.m{i}()") for i in range(50)]
        verdicts = lambda: {client.active(slot) for slot in slots}  # noqa: E731
        client.flood(2, 250)
        receiver.switch("deactivate", "t1.*(..)")
        started = time.monotonic()
        wait_for("the verdicts", lambda: verdicts() == {False})
        self.assertLess(time.monotonic() - started, 1)
        client.flood(2, 500)
        receiver.switch("activate", "t1.m0()")
        wait_for("the verdict", lambda: verdicts() == {True, False})
        self.assertTrue(client.active(slots[0]))
        receiver.switch("activate", "t1.*(..)")
        wait_for("the verdicts", lambda: verdicts() == {True})
        client.flood(2, 250)
        stats = client.close()
        self.assertEqual(stats["sent"], 1500)
        names = [record["fields"]["operationSignature"] for record in receiver.records()]
        self.assertEqual([sum(f" t{it}." in name for name in names) for it in (0, 1)], [1000, 500])

    def send_to_baler(self, plain):
        receiver = Receiver(5000)
        self.addCleanup(receiver.end)
        client = self.start(receiver.uri, plain=plain)
        for number in range(5000):
            client.send(f"op{number % 9}-ä", number)
        stats = client.close()
        records = receiver.records()
        got = [(record["fields"]["orderIndex"], record["fields"]["operationSignature"]) for record in records]
        self.assertEqual(got, [(number, f"op{number % 9}-ä") for number in range(5000)])
        self.assertEqual(stats["sent"], 5000)
        self.assert_adds_up(stats)
        return stats

    # ---- helpers ----

    def in_background(self, function):
        """Calls a function in a thread. Returns a function that waits for its result."""
        import concurrent.futures

        pool = concurrent.futures.ThreadPoolExecutor(1)
        future = pool.submit(function)
        pool.shutdown(wait=False)
        return lambda: future.result(60)

    def fill_buffers(self, client):
        """Sends until the system's buffers, some megabytes, take nothing more. Returns the numbers of records."""
        sequence, sent = [], -1
        while client.stats()["sent"] != sent:
            sent = client.stats()["sent"]
            for _ in range(5):
                client.flood(1, 20_000)
                sequence += range(20_000)
            self.settle(client)
        return sequence

    def settle(self, client):
        """Waits until a client sends no more, because its peer does not read."""
        seen, since = None, time.monotonic()

        def is_still():
            nonlocal seen, since
            if (sent := client.stats()["sent"]) != seen:
                seen, since = sent, time.monotonic()
            return time.monotonic() - since > 1

        wait_for("the stall", is_still)

"""Sends Kieker's records to Baler over kieker+tcp, and lets Baler switch probes off and on.

application threads -> queue -> one thread -> socket -> Baler
                         verdicts <- one thread <- socket <- Baler

An id of a string holds for the life of the client, so records wait encoded. Each connection gets
all strings again, before the first record that can name them. README.md has a complete example,
and says which records can be lost.
"""

import collections
import dataclasses
import re
import selectors
import socket
import struct
import threading
import time

__all__ = ["Client", "Stats"]

# First words of what is sent and received. -1 is Kieker's own; the others are those of kdb-v2.
STRING = -1
SIGNATURE = -32  # a request, or its answer
BATCH = -33
HELLO = -34
ERROR = -35
PING = -36
PONG = -37
BATCH_REQUEST = -38
SNAPSHOT = -39
STATS = -40
BYE = -41
FRAMED = -42

ERROR_VERSION, ERROR_MALFORMED, ERROR_LIMIT, ERROR_SLOT, ERROR_COMMAND = 1, 2, 3, 4, 5

MAGIC = 0x4B444232
MAJOR = 2
FEATURE_BATCH = 0x02
FEATURES = 0x17  # push, batch, snapshot, framed
MAX_PAIRS = 1 << 20
BATCH_PAIRS = 8192
MAX_RECORD_BYTES = 65536
MAX_STRING_BYTES = 65536
OUT_BYTES = 65536

HELLO_TIME = 1.0  # records wait so long for the answer to Hello
LINGER = 0.001  # records are gathered so long, which bounds the wakes of the thread
PING_TIME = 1.0  # how often Baler is asked what it has read
CONNECT_TIME = 10.0
RETRY_MIN, RETRY_MAX = 0.1, 5.0
UNANSWERED = 2  # so many connections end at Hello before one without Hello is tried
NEVER = float("inf")

# The bytes of each command without its text or its pairs.
HEADS = {SIGNATURE: 9, BATCH: 12, HELLO: 24, ERROR: 16, PING: 12, PONG: 12}
HEADS |= {SNAPSHOT: 16, BYE: 8, FRAMED: 12}

_int = struct.Struct(">i").pack
_head = struct.Struct(">iq").pack
_ping = struct.Struct(">iq").pack


@dataclasses.dataclass
class Stats:
    """offered = waiting + sent + all dropped. When closed, waiting is 0, and sent = read + in_doubt."""

    offered: int = 0  # calls of Client.send
    waiting: int = 0  # in the queue, or not completely sent
    sent: int = 0  # the operating system has all bytes; they can still be lost
    read: int = 0  # of sent: Baler says that it has read them
    in_doubt: int = 0  # of sent: the connection ended before Baler said so
    dropped_full: int = 0  # the queue was full
    dropped_invalid: int = 0  # encoding failed, or a record or string is too long
    dropped_strings: int = 0  # there are too many different strings
    dropped_closed: int = 0  # the client was closed, or the time of close was over
    connections: int = 0  # successful attempts to connect
    updates: int = 0  # verdicts that came, also if they changed nothing
    protocol_errors: int = 0  # connections that ended because the peer sent wrong bytes
    last_error: int = 0  # code of the peer's last error message, 0 for none
    is_connected: bool = False
    is_adaptive: bool = False  # the peer switches probes


class _TooMany(Exception):
    pass


class _Refused(Exception):
    """The peer breaks the protocol; the argument is the code of the error."""


class _Table:
    """Different texts, numbered from 0. An item is the text in UTF-8."""

    def __init__(self, limit):
        self.numbers = {}
        self.texts = []
        self.limit = limit

    def number(self, text):
        """Returns the number of a text. The lock is held."""
        number = self.numbers.get(text)
        if number is None:
            encoded = text.encode()
            if len(encoded) > MAX_STRING_BYTES:
                raise ValueError(f"a string of {len(encoded)} bytes")
            if len(self.texts) >= self.limit:
                raise _TooMany
            number = self.numbers[text] = len(self.texts)
            self.texts.append(encoded)
        return number


class Client:
    """A client of kieker+tcp://HOST:PORT.

    All methods may be called by any thread. None of them waits for the network, except close. None
    of them raises an exception because of a record. The child of a fork needs a client of its own.
    """

    def __init__(
        self,
        uri,
        *,
        name="python",
        queue_bytes=1 << 20,
        max_strings=65536,
        max_probes=65536,
        plain=False,
    ):
        """Starts the client. It does not wait for the connection.

        `name` is that of the program, for the list of connected programs. With `plain`, no probe is
        switched, and every byte is Kieker's own protocol. Raises ValueError if the URI is wrong.
        """
        found = re.fullmatch(r"kieker\+tcp://(?:\[([^\]/?]+)\]|([^:/?\[\]]+)):(\d{1,5})", uri)
        if not found or int(found[3]) > 65535:
            raise ValueError(f"{uri!r} is not kieker+tcp://HOST:PORT")
        if len(name.encode()) > 1024:
            raise ValueError("the name has more than 1,024 bytes")
        self._address = (found[1] or found[2], int(found[3]))
        self._name = name.encode()
        self._queue_bytes = queue_bytes
        self._max_probes = min(max_probes, MAX_PAIRS)
        self._plain = plain
        # The last one stays active; it is that of signatures without a slot.
        self._verdicts = bytearray(b"\x01" * (self._max_probes + 1))

        self._lock = threading.Lock()  # of the next members
        self._strings = _Table(max_strings)
        self._probes = _Table(self._max_probes)
        self._filling = []
        self._filling_bytes = 0
        self._is_woken = False
        self._close_at = None
        self._stats = Stats()

        # The rest is the thread's alone.
        self._draining = collections.deque()  # records that are not completely sent
        self._taken = 0  # how many of them are in the output
        self._take_at = self._retry_at = 0.0
        self._retry = RETRY_MIN
        self._unanswered = 0
        self._is_over = False
        self._socket = None
        self._output = bytearray()
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="baler", daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- application threads ----

    def send(self, record):
        """Copies a record into the queue. Returns True, or False if it is dropped.

        The record has `TYPE`, its full name, and `encode(string_id)`, which returns its fields as
        bytes. The logging timestamp is the time of this call.
        """
        now = time.time_ns()
        try:
            type_id = self._string_id(record.TYPE)
            data = _head(type_id, now) + record.encode(self._string_id)
            drop = "dropped_invalid" if len(data) > MAX_RECORD_BYTES else None
        except _TooMany:
            drop = "dropped_strings"
        except Exception:  # A record that is wrong must not end the application.
            drop = "dropped_invalid"
        with self._lock:
            stats = self._stats
            stats.offered += 1
            if self._close_at is not None:
                drop = "dropped_closed"
            elif drop is None and self._filling_bytes + len(data) > self._queue_bytes // 2:
                drop = "dropped_full"
            if drop:
                setattr(stats, drop, getattr(stats, drop) + 1)
                return False
            self._filling.append(data)
            self._filling_bytes += len(data)
            stats.waiting += 1
            self._wake()
        return True

    def probe(self, signature):
        """Returns the slot of a signature. Call it once for each operation.

        A slot is active until Baler says otherwise. A signature that is too long, or beyond
        `max_probes`, gets a slot that is always active.
        """
        with self._lock:
            try:
                slot = self._probes.number(signature)
            except (_TooMany, ValueError):
                return self._max_probes
            self._wake()
        return slot

    def is_active(self, slot):
        """Whether the probe records. The last verdict holds without a connection."""
        return self._verdicts[slot] == 1

    def stats(self):
        """Returns the counts up to now."""
        with self._lock:
            return dataclasses.replace(self._stats)

    def close(self, timeout=5.0):
        """Sends the records that wait, for at most `timeout` seconds. Returns the counts.

        A resolver of names that hangs can make it last longer.
        """
        with self._lock:
            if self._close_at is None:
                self._close_at = time.monotonic() + timeout
            self._is_woken = False
            self._wake()
        self._thread.join()
        with self._lock:
            self._stats.dropped_closed += self._stats.waiting
            self._stats.waiting = 0
        self._wake_read.close()
        self._wake_write.close()
        return self.stats()

    def _string_id(self, text):
        with self._lock:
            return self._strings.number(text)

    def _wake(self):
        """Ends the thread's waiting. The lock is held."""
        if not self._is_woken:
            self._is_woken = True
            try:
                self._wake_write.send(b"\0")
            except OSError:
                pass  # It is full, so the thread wakes anyway; or the client is closed.

    # ---- the thread: sending ----

    def _fill(self, now):
        """Fills the empty output with the next items."""
        out = self._output
        self._records_at = 0
        if self._is_ended:
            return
        if not self._is_kieker and self._hello is None:
            out += struct.pack(">iihhiii", HELLO, MAGIC, MAJOR, 0, FEATURES, self._max_probes, len(self._name))
            out += self._name
            self._hello = False
            self._hello_until = now + HELLO_TIME
            return
        if self._peer_ping is not None:
            out += _ping(PONG, self._peer_ping)
            self._peer_ping = None
        if self._unknown_slot is not None:
            out += struct.pack(">iiii", ERROR, ERROR_SLOT, self._unknown_slot, 0)
            self._unknown_slot = None
        is_waiting = self._hello is False and now < self._hello_until
        draining = self._draining
        with self._lock:
            if self._taken == len(draining) and now >= self._take_at and not is_waiting:
                self._is_woken = False
                if self._filling:
                    draining.extend(self._filling)
                    self._filling = []
                    self._filling_bytes = 0
                    self._take_at = now + LINGER
            # The table is complete for the records of draining, but not for those of filling.
            strings = len(self._strings.texts)
            probes = min(len(self._probes.texts), self._peer_slots)
            is_last = self._close_at is not None and not self._filling
            stats = self._stats
            drops = stats.dropped_full + stats.dropped_invalid + stats.dropped_strings
        if not is_waiting:
            self._put_strings(strings)
            if self._hello:
                self._put_requests(probes)
            self._records_at = len(out)
            if self._registered == strings:
                while self._taken < len(draining) and len(out) < OUT_BYTES:
                    out += draining[self._taken]
                    self._taken += 1
                    self._put += 1
        is_last = is_last and self._taken == len(draining)
        is_unread = self._put > self._read or drops != self._drops_told
        is_due = self._open_pings == 0 and now >= self._ping_at
        if self._hello and is_unread and (is_last or is_due):
            if drops != self._drops_told:
                # Hits are 0: counting them would cost a probe a write.
                out += struct.pack(">iqqqi", STATS, 0, self._requested, drops, self._requested)
                self._drops_told = drops
            out += _ping(PING, self._put)  # The nonce is the number of records before it.
            self._open_pings += 1
            self._ping_at = now + PING_TIME
        if self._hello and is_last:
            out += _int(BYE) + _int(0)
        self._is_ended = is_last

    def _put_strings(self, end):
        out, texts = self._output, self._strings.texts
        while self._registered < end and len(out) < OUT_BYTES:
            text = texts[self._registered]
            out += struct.pack(">iii", STRING, self._registered, len(text)) + text
            self._registered += 1

    def _put_requests(self, end):
        """Asks for the slots that this connection has not asked for."""
        out, texts, first = self._output, self._probes.texts, self._requested
        is_batch = end > first + 1 and self._peer_features & FEATURE_BATCH
        entries = bytearray()
        while self._requested < end and len(out) + len(entries) < OUT_BYTES:
            if self._requested - first == BATCH_PAIRS:
                break
            text = texts[self._requested]
            if not is_batch:
                entries += _int(SIGNATURE)
            entries += struct.pack(">ii", self._requested, len(text)) + text
            self._requested += 1
        if is_batch and self._requested > first:
            out += _int(BATCH_REQUEST) + _int(self._requested - first)
        out += entries

    def _flush(self):
        try:
            count = self._socket.send(self._output)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._disconnect()
            return
        # Counts the records that the operating system has completely.
        self._records_at -= count
        sent, draining = 0, self._draining
        while self._taken > 0 and self._records_at + len(draining[0]) <= 0:
            self._records_at += len(draining.popleft())
            self._taken -= 1
            sent += 1
        del self._output[:count]
        self._sent += sent
        with self._lock:
            self._stats.sent += sent
            self._stats.waiting -= sent

    def _disconnect(self):
        self._socket.close()
        self._socket = None
        self._output.clear()
        self._taken = 0  # What is not completely sent is sent again.
        self._unanswered = self._unanswered + 1 if self._hello is False else 0
        now = time.monotonic()
        if now - self._connected_at > RETRY_MAX:
            self._retry = RETRY_MIN
        self._back_off(now)
        with self._lock:
            self._stats.in_doubt += self._sent - self._read
            self._stats.is_connected = self._stats.is_adaptive = False

    def _back_off(self, now):
        self._retry_at = now + self._retry
        self._retry = min(2 * self._retry, RETRY_MAX)

    # ---- the thread: receiving ----

    def _receive(self):
        try:
            data = self._socket.recv(65536)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._disconnect()
            return
        if not data:
            # A peer that has not read everything answers the end with a reset.
            if self._is_shut:
                self._set_read(self._sent)
                self._is_over = True
            self._disconnect()
        elif not self._is_kieker:  # Kieker's protocol has no answers.
            self._input += data
            try:
                self._take_input()
            except _Refused as refused:
                self._refuse(refused.args[0])

    def _refuse(self, code):
        """Ends a connection whose peer breaks the protocol."""
        if not self._output:
            try:
                # The peer learns it if there is room; the connection ends anyway.
                self._socket.send(struct.pack(">iiii", ERROR, code, -1, 0))
            except OSError:
                pass
        with self._lock:
            self._stats.protocol_errors += 1
        if code == ERROR_VERSION:
            self._unanswered = UNANSWERED
        self._disconnect()

    def _take_input(self):
        """Takes what is complete in the input."""
        data, at = self._input, 0
        while True:
            left = len(data) - at
            if self._skip:
                count = min(self._skip, left)
                self._skip -= count
                at += count
                if self._skip:
                    break
            elif self._pairs:
                if left < 5:
                    break
                self._apply(*struct.unpack_from(">iB", data, at))
                self._pairs -= 1
                at += 5
            else:
                if left < 4:
                    break
                (command,) = struct.unpack_from(">i", data, at)
                head = HEADS.get(command)
                if head is None:
                    raise _Refused(ERROR_COMMAND)
                if left < head:
                    break
                self._obey(command, data[at + 4 : at + head])
                at += head
        del data[:at]

    def _obey(self, command, body):
        if not self._hello and command not in (HELLO, ERROR):
            raise _Refused(ERROR_MALFORMED)
        if command == SIGNATURE:
            self._apply(*struct.unpack(">iB", body))
        elif command == BATCH:
            nested, count = struct.unpack(">ii", body)
            if nested != SIGNATURE:
                raise _Refused(ERROR_MALFORMED)
            self._pairs = _count(count, MAX_PAIRS)
        elif command == SNAPSHOT:
            # It has every slot that Baler knows; the answers for the others follow.
            _epoch, count = struct.unpack(">qi", body)
            self._pairs = _count(count, MAX_PAIRS)
        elif command == HELLO:
            magic, major, _minor, features, slots, length = struct.unpack(">ihhiii", body)
            if magic != MAGIC or self._hello or slots < 0:
                raise _Refused(ERROR_MALFORMED)
            if major != MAJOR:
                raise _Refused(ERROR_VERSION)
            self._peer_features, self._peer_slots = features, slots
            self._hello = True
            with self._lock:
                self._stats.is_adaptive = True
            self._skip = _count(length, MAX_STRING_BYTES)
        elif command == ERROR:
            code, _slot, length = struct.unpack(">iii", body)
            with self._lock:
                self._stats.last_error = code
            if code == ERROR_VERSION:
                self._unanswered = UNANSWERED
            self._skip = _count(length, MAX_STRING_BYTES)
        elif command == PING:
            # Only the last one is answered, so that pings take no memory.
            (self._peer_ping,) = struct.unpack(">q", body)
        elif command == PONG:
            (count,) = struct.unpack(">q", body)
            if self._open_pings == 0 or not self._read <= count <= self._sent:
                raise _Refused(ERROR_MALFORMED)
            self._open_pings -= 1
            self._set_read(count)
        elif command == FRAMED:
            _command, length = struct.unpack(">ii", body)
            self._skip = _count(length, MAX_PAIRS)
        # After BYE the connection ends, and the next one follows.

    def _apply(self, slot, verdict):
        if verdict > 1:
            raise _Refused(ERROR_MALFORMED)
        if not 0 <= slot < self._requested:
            self._unknown_slot = slot
            return
        self._verdicts[slot] = verdict
        with self._lock:
            self._stats.updates += 1

    def _set_read(self, count):
        with self._lock:
            self._stats.read += count - self._read
        self._read = count

    # ---- the thread: its loop ----

    def _wait(self, connection, events, until):
        """Waits for the socket, for a wake or for a time. Returns what the socket is ready for."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_read, selectors.EVENT_READ)
            if connection is not None:
                selector.register(connection, events)
            ready = selector.select(max(0.0, min(until - time.monotonic(), 60.0)))
        found = 0
        for key, mask in ready:
            if key.fileobj is connection:
                found = mask
            else:
                self._wake_read.recv(64)
        return found

    def _close_time(self):
        with self._lock:
            return NEVER if self._close_at is None else self._close_at

    def _dial(self, address):
        """Connects to one address. Returns the socket, or None."""
        family, kind, protocol, _, target = address
        try:
            connection = socket.socket(family, kind, protocol)
        except OSError:
            return None
        connection.setblocking(False)
        problem = connection.connect_ex(target)
        end = time.monotonic() + CONNECT_TIME
        ready = 0
        while not ready and time.monotonic() < (until := min(end, self._close_time())):
            ready = self._wait(connection, selectors.EVENT_WRITE, until)
        problem = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if ready else problem
        if ready and not problem:
            return connection
        connection.close()
        return None

    def _connect(self):
        connection = None
        try:
            for address in socket.getaddrinfo(*self._address, type=socket.SOCK_STREAM):
                connection = self._dial(address)
                if connection:
                    break
        except (OSError, UnicodeError):
            pass  # The name is not known, perhaps not yet.
        self._connected_at = time.monotonic()
        if connection is None:
            self._back_off(self._connected_at)
            return
        self._socket = connection
        self._hello = None  # then False: sent, and True: answered
        self._hello_until = 0.0
        self._is_kieker = self._plain or self._unanswered >= UNANSWERED
        self._is_ended = self._is_shut = False
        self._open_pings = 0
        self._peer_ping = self._unknown_slot = None
        self._peer_features = self._peer_slots = 0
        self._registered = self._requested = self._skip = self._pairs = 0
        self._put = self._sent = self._read = self._drops_told = 0
        self._records_at = 0
        self._input = bytearray()
        self._ping_at = self._connected_at
        with self._lock:
            self._stats.connections += 1
            self._stats.is_connected = True

    def _serve(self, close_at):
        """Sends and receives once, or waits until that is possible."""
        now = time.monotonic()
        if not self._output:
            self._fill(now)
        if self._is_ended and not self._output and not self._is_shut:
            self._is_shut = True
            try:
                self._socket.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # The peer has closed; reading says so.
        until = close_at
        if self._hello is False and now < self._hello_until:
            until = min(until, self._hello_until)
        elif now < self._take_at:
            until = min(until, self._take_at)
        elif self._hello and self._put > self._read and self._open_pings == 0:
            # With items in the output, no ping can be added.
            if not self._output and not self._is_ended:
                until = min(until, self._ping_at)
        events = selectors.EVENT_READ
        if self._output:
            events |= selectors.EVENT_WRITE
        ready = self._wait(self._socket, events, until)
        if ready & selectors.EVENT_READ:
            self._receive()
        if self._socket is not None and ready & selectors.EVENT_WRITE:
            self._flush()

    def _run(self):
        while not self._is_over:
            close_at = self._close_time()
            now = time.monotonic()
            if now >= close_at:
                break
            if self._socket is not None:
                self._serve(close_at)
                continue
            with self._lock:
                self._is_over = self._close_at is not None and not self._stats.waiting
            if now < self._retry_at:
                self._wait(None, 0, min(close_at, self._retry_at))
            elif not self._is_over:
                self._connect()
        if self._socket is not None:
            self._disconnect()


def _count(count, limit):
    if count < 0:
        raise _Refused(ERROR_MALFORMED)
    if count > limit:
        raise _Refused(ERROR_LIMIT)
    return count

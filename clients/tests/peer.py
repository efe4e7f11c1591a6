"""A peer of kieker+tcp whose every byte a test decides, and clients behind one set of methods."""

import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

CLIENTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CLIENTS / "python"))

import baler_client  # noqa: E402

BEFORE = "kieker.common.record.flow.trace.operation.BeforeOperationEvent"
EMPTY = "kieker.common.record.misc.EmptyRecord"
FIELD_BYTES = {BEFORE: 28, EMPTY: 0}
TIME_LIMIT = 60.0


def wait_for(what, condition):
    """Polls until the condition returns something true. Returns it."""
    end = time.monotonic() + TIME_LIMIT
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.002)
    return found


def hello(features=0x17, slots=1 << 20, name=b"peer", major=2):
    return struct.pack(">iihhiii", -34, 0x4B444232, major, 0, features, slots, len(name)) + name


class Peer:
    """Listens at a free port of loopback."""

    def __init__(self, receive_buffer=None):
        self.listener = socket.socket()
        if receive_buffer:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.listener.settimeout(TIME_LIMIT)
        self.uri = f"kieker+tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        self.connections = []

    def accept(self, answer=None):
        """Accepts a connection. Takes Hello and answers, if there is an answer."""
        connection = Connection(self.listener.accept()[0])
        self.connections.append(connection)
        if answer is not None:
            assert connection.item()[0] == "hello"
            connection.send(answer)
        return connection

    def close(self):
        for connection in self.connections:
            connection.socket.close()
        self.listener.close()


class Connection:
    def __init__(self, peer):
        self.socket = peer
        self.socket.settimeout(TIME_LIMIT)
        self.strings = {}

    def send(self, data):
        self.socket.sendall(bytes.fromhex(data) if isinstance(data, str) else data)

    def take(self, count):
        """Returns the next bytes, fewer only at the end."""
        data = b""
        while len(data) < count and (more := self.socket.recv(count - len(data))):
            data += more
        return data

    def ints(self, layout):
        return struct.unpack(">" + layout, self.take(struct.calcsize(">" + layout)))

    def text(self):
        return self.take(self.ints("i")[0]).decode()

    def item(self):
        """Returns the next item as a tuple that begins with its kind; ("end",) at the end."""
        first = self.take(4)
        if not first:
            return ("end",)
        (command,) = struct.unpack(">i", first)
        if command >= 0:
            name = self.strings[command]
            (timestamp,) = self.ints("q")
            fields = self.take(FIELD_BYTES[name])
            if name == EMPTY:
                return ("empty",)
            _, trace, number, operation, of = struct.unpack(">qqiii", fields)
            assert timestamp > 10**18 and trace == 7 and self.strings[of] == "com.shop.Cart"
            return ("record", self.strings[operation], number)
        if command == -1:
            (number,) = self.ints("i")
            self.strings[number] = self.text()
            return ("string", number, self.strings[number])
        if command == -32:
            return ("request", self.ints("i")[0], self.text())
        if command == -34:
            return ("hello", *self.ints("ihhii"), self.text())
        if command == -35:
            return ("error", *self.ints("ii"), self.text())
        if command == -38:
            count = self.ints("i")[0]
            return ("batch", [(self.ints("i")[0], self.text()) for _ in range(count)])
        layouts = {-36: ("ping", "q"), -37: ("pong", "q"), -40: ("stats", "qqqi"), -41: ("bye", "i")}
        kind, layout = layouts[command]
        return (kind, *self.ints(layout))

    def next(self, *kinds):
        """Returns the next item of these kinds. Registrations and others before it are passed over."""
        while (item := self.item())[0] not in kinds:
            assert item[0] != "end", f"the end comes before {kinds}"
        return item

    def read_to_end(self, answers_pings=True):
        """Returns all items up to the end, and closes."""
        items = []
        while (item := self.item())[0] != "end":
            items.append(item)
            if item[0] == "ping" and answers_pings:
                self.send(struct.pack(">iq", -37, item[1]))
        self.socket.close()
        return items

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Before:
    """As `baler irl generate --language python` writes it, apart from its constructor."""

    TYPE = BEFORE

    def __init__(self, operation, number):
        self.operation, self.number = operation, number

    def encode(self, string_id):
        ids = string_id(self.operation), string_id("com.shop.Cart")
        return struct.pack(">qqiii", 1000 + self.number, 7, self.number, *ids)


class Empty:
    TYPE = EMPTY

    def encode(self, _string_id):
        return b""


class PythonClient:
    def __init__(self, uri, queue_bytes=0, max_strings=0, max_probes=0, plain=0):
        chosen = {"queue_bytes": queue_bytes, "max_strings": max_strings, "max_probes": max_probes}
        chosen = {name: value for name, value in chosen.items() if value}
        self.client = baler_client.Client(uri, name="test", plain=bool(plain), **chosen)
        self.probe, self.active = self.client.probe, self.client.is_active

    def send(self, operation, number):
        return self.client.send(Before(operation, number))

    def send_empty(self):
        return self.client.send(Empty())

    def flood(self, threads, count):
        def run(thread):
            for i in range(count):
                text = f"public void t{thread}.m{i % 50}()"
                if self.active(self.probe(text)):
                    self.send(text, i)

        started = [threading.Thread(target=run, args=[thread]) for thread in range(threads)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()

    def stats(self):
        return vars(self.client.stats())

    def close(self, timeout=20.0):
        return vars(self.client.close(timeout))

    def end(self):
        self.client.close(0)


class CClient:
    """A client in C in a process of its own."""

    def __init__(self, driver, uri, queue_bytes=0, max_strings=0, max_probes=0, plain=0):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([*driver], **pipes)
        if not self.ask(f"open {uri} {queue_bytes} {max_strings} {max_probes} {plain}"):
            self.end()
            raise ValueError(uri)

    def ask(self, command):
        self.process.stdin.write(command.encode(errors="surrogateescape") + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the driver ended at {command[:50]}: {self.process.wait()}"
        return json.loads(answer)

    def probe(self, signature):
        return self.ask(f"probe {signature}")

    def active(self, slot):
        return bool(self.ask(f"active {slot}"))

    def send(self, operation, number):
        return bool(self.ask(f"send {operation} {number}"))

    def send_empty(self):
        return bool(self.ask("empty"))

    def flood(self, threads, count):
        self.ask(f"flood {threads} {count}")

    def stats(self):
        return self.ask("stats")

    def close(self, timeout=20.0):
        stats = self.ask(f"close {int(timeout * 1000)}")
        self.process.stdin.close()
        # A sanitizer that found something changes the exit status.
        assert self.process.wait() == 0
        self.process.stdout.close()
        return stats

    def end(self):
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()


def baler():
    """Returns the path of the program."""
    path = os.environ.get("BALER", CLIENTS.parent / "target/debug/baler")
    assert pathlib.Path(path).exists(), f"{path} is missing: build it, or set BALER to its path"
    return str(path)


class Receiver:
    """`baler receive` that ends after so many records, and switches probes."""

    def __init__(self, count):
        self.folder = tempfile.TemporaryDirectory()
        port, metrics, self.token = (pathlib.Path(self.folder.name, it) for it in ("port", "metrics", "token"))
        self.token.write_text("secret")
        args = ["receive", "--from", "kieker+tcp://127.0.0.1:0", "--port-file", str(port)]
        args += ["--format", "json", "--count", str(count), "--probes-token", str(self.token)]
        args += ["--metrics", "0", "--metrics-port-file", str(metrics)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([baler(), *args], **pipes)
        address = wait_for("the receiver", lambda: port.exists() and port.read_text().strip())
        self.uri = f"kieker+tcp://{address}"
        self.metrics = metrics.read_text().strip()

    def switch(self, action, pattern):
        args = ["probes", action, pattern, "--via", self.metrics, "--token-file", str(self.token)]
        subprocess.run([baler(), *args], check=True, capture_output=True, timeout=TIME_LIMIT)

    def records(self):
        """Waits for the end. Returns the records."""
        output, errors = self.process.communicate(timeout=TIME_LIMIT)
        assert self.process.returncode == 0, errors
        return [json.loads(line) for line in output.splitlines()]

    def end(self):
        self.process.kill()
        self.process.communicate()
        self.folder.cleanup()


def example_of(readme, language):
    """Returns the first block of a README in this language."""
    return (CLIENTS / readme).read_text().split(f"```{language}\n")[1].split("```")[0]

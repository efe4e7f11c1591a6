"""Kafka's mock cluster, which lives as long as a receiver of the program."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from conftest import PROGRAM


@contextlib.contextmanager
def mock_topic(folder: Path, partitions: int = 3) -> Iterator[str]:
    """The URI of a topic in a cluster of its own."""
    port_file = folder / "mock"
    uri = f"kafka+mock:calls?partitions={partitions}"
    command = [PROGRAM, "--quiet", "receive", "--from", uri, "--format", "none"]
    with subprocess.Popen([*command, "--port-file", str(port_file)]) as cluster:
        try:
            deadline = time.monotonic() + 30
            while not (port_file.exists() and port_file.read_text()):
                assert cluster.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
            yield f"kafka://{port_file.read_text().strip()}/calls"
        finally:
            cluster.terminate()

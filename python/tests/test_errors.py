"""What cannot be read becomes an exception that says where and why."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import GOLDEN

import baler

CALLS = (GOLDEN / "kieker-calls.chunk").read_bytes()


def test_a_damaged_chunk_is_an_error_with_its_place(tmp_path: Path) -> None:
    damaged = bytearray(CALLS)
    damaged[200] ^= 1
    path = tmp_path / "damaged.chunk"
    path.write_bytes(damaged)
    with pytest.raises(baler.DecodeError, match="checksum") as caught:
        list(baler.iter_records(path))
    assert isinstance(caught.value.offset, int)
    assert caught.value.field
    assert str(path) in caught.value.origin
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.offset) == (str(caught.value), caught.value.offset)
    with pytest.raises(baler.DecodeError):
        baler.read(path)["OperationExecutionRecord"]


def test_a_damaged_chunk_ends_a_stream_with_its_place() -> None:
    table = baler.read([CALLS, CALLS[:-1]])["OperationExecutionRecord"]
    with pytest.raises(pa.ArrowException, match="bytes memory@0: no whole chunk begins here"):
        pa.table(table)
    batches = iter(table)
    assert len(next(batches)) > 0
    with pytest.raises(baler.DecodeError) as caught:
        next(batches)
    assert (caught.value.offset, caught.value.field) == (8, "the chunk")


def test_chunks_in_memory_are_read_one_after_the_other() -> None:
    once = list(baler.iter_records(CALLS))
    two_types = (GOLDEN / "two-types.chunk").read_bytes()
    both = list(baler.iter_records(memoryview(CALLS + two_types)))
    assert both == once + list(baler.iter_records(bytearray(two_types)))
    assert list(baler.iter_records(b"")) == []


def test_wrong_arguments_say_what_is_right(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        baler.read(tmp_path / "missing")
    assert caught.value.filename == str(tmp_path / "missing")
    with pytest.raises(FileNotFoundError, match="no path matches"):
        baler.read(tmp_path / "*.chunk")
    with pytest.raises(ValueError, match="did you mean file:"):
        list(baler.iter_records("fiel://orders"))
    with pytest.raises(ValueError, match="has no end"):
        list(baler.iter_records("tcp://127.0.0.1:0"))
    with pytest.raises(ValueError, match="is no topic of Kafka"):
        baler.KafkaRange("file:orders", {0: (0, 10)})
    with pytest.raises(ValueError, match="the topic"):
        baler.KafkaRange("kafka://localhost", {0: (0, 10)})
    with pytest.raises(ValueError, match='"ns" or "us"'):
        baler.read(CALLS, times="ms")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="source is int"):
        baler.read(7)  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="no record type is Order; there are kieker"):
        baler.read(CALLS)["Order"]
    assert list(baler.iter_records(tmp_path)) == []


def test_patterns_and_lists_name_several_sources(tmp_path: Path) -> None:
    for name in ["a", "b"]:
        (tmp_path / f"{name}.chunk").write_bytes(CALLS)
    once = list(baler.iter_records(CALLS))
    assert list(baler.iter_records(str(tmp_path / "?.chunk"))) == once * 2
    assert list(baler.iter_records([tmp_path / "a.chunk", CALLS])) == once * 2
    # A folder without segments is a folder of chunk files.
    assert list(baler.iter_records(tmp_path)) == once * 2


def test_types_are_chosen_by_name() -> None:
    path = GOLDEN / "two-types.chunk"
    tables = baler.read(path)
    names = [table.type for table in tables]
    assert len(tables) == len(set(names)) == 2
    for name in names:
        assert name in tables
        assert [table.type for table in baler.read(path, name)] == [name]
        records = list(baler.iter_records(path, types=[name]))
        assert records and {record["type"] for record in records} == {name}
        assert pa.table(tables[name]).num_rows == len(records)
    assert "Order" not in tables
    assert list(baler.iter_records(path, types=[])) == list(baler.iter_records(path))


def test_versions_of_a_type_are_tables_of_their_own(tmp_path: Path) -> None:
    uris = []
    for number, line in enumerate(['{"id": 1}', '{"id": 2, "item": "tea"}']):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(line + "\n")
        uris.append(f"jsonl:{path}")
    tables = baler.read(uris)
    first = tables["json"]
    with pytest.raises(baler.Error, match="json names several tables: json version"):
        list(first)
    with pytest.raises(pa.ArrowException, match="json names several tables"):
        pa.table(first)
    found = [pa.table(table).column("id").to_pylist() for table in tables]
    assert found == [[1], [2]]
    with pytest.raises(baler.Error, match="choose by type and version"):
        tables["json"]


WAITS = """
import baler, sys
{setup}
print("ready", flush=True)
{wait}
"""


@pytest.mark.parametrize("wait", ["list(records)", "pyarrow.table(table)", "list(table)"])
def test_control_c_ends_reading(wait: str, tmp_path: Path) -> None:
    chunks = tmp_path / "many.chunk"
    chunks.write_bytes(CALLS)
    setup = (
        "import pyarrow\n"
        f"many = [{str(chunks)!r}] * 40_000\n"
        "records = baler.iter_records(many)\n"
        'table = baler.read(many)["OperationExecutionRecord"]'
    )
    script = WAITS.format(setup=setup, wait=wait)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in stderr, stderr
    assert process.returncode != 0


def test_other_threads_run_while_chunks_are_decoded(folder: Path) -> None:
    """A thread that counts makes progress while another one reads without a break."""
    counted, done = 0, threading.Event()

    def read() -> None:
        for _ in range(5):
            pa.table(baler.read(folder)["OperationExecutionRecord"])
        done.set()

    reader = threading.Thread(target=read)
    reader.start()
    while not done.is_set():
        counted += 1
    reader.join()
    assert counted > 1_000


def test_threads_share_one_iterator(folder: Path) -> None:
    records = baler.iter_records(folder)
    counts: list[int] = []

    def count() -> None:
        counts.append(sum(1 for _ in records))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 6_000


def test_memory_is_bounded_by_a_chunk(tmp_path: Path) -> None:
    """Batches of a hundred times as many records take no more memory."""
    script = (
        "import baler, pyarrow, resource, sys\n"
        "table = baler.read([sys.argv[1]] * int(sys.argv[2]))['OperationExecutionRecord']\n"
        "rows = sum(batch.num_rows for batch in pyarrow.RecordBatchReader.from_stream(table))\n"
        "rows += sum(1 for _ in baler.iter_records([sys.argv[1]] * int(sys.argv[2])))\n"
        "print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    path = tmp_path / "calls.chunk"
    path.write_bytes(CALLS)
    used = []
    for copies in [10, 1_000]:
        command = [sys.executable, "-c", script, os.fspath(path), str(copies)]
        rows, kib = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        assert int(rows) == 2 * copies * len(list(baler.iter_records(CALLS)))
        used.append(int(kib))
    assert used[1] < used[0] + 8_000, used

"""A consumer acknowledges chunks. What it does not acknowledge comes again."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import run

import baler


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A folder with ten chunks, whose position belongs to one consumer."""
    folder = tmp_path / "calls"
    run("generate", "--records", "1000", "--chunk-records", "100", "--to", f"file:{folder}")
    return f"file:{folder}?consumer=test&commit_interval=0s"


def test_acknowledged_chunks_do_not_come_again(uri: str) -> None:
    with baler.consume(uri, identity=True) as consumer:
        sequences = []
        for delivery in consumer:
            assert delivery.identity is not None
            sequences.append(delivery.identity["sequence"])
            records = list(delivery.records())
            assert len(delivery) == len(records) == sum(len(batch) for batch in delivery)
            for batch in delivery:
                rows = pa.record_batch(batch)
                assert rows == pa.record_batch(delivery[batch.type])
                assert rows.column("_sequence").to_pylist() == [sequences[-1]] * len(batch)
            with pytest.raises(KeyError, match="no record is a Order"):
                delivery["Order"]
            assert delivery.origin and uri.split("?")[0].removeprefix("file:") in delivery.origin
            assert not delivery.is_redelivered
            delivery.ack()
            delivery.ack()
            with pytest.raises(ValueError, match="settled already"):
                len(delivery)
        report = consumer.report
        assert report is not None
        assert report["acknowledged"] == report["chunks"] == len(sequences) > 9
        assert report["in_work"] == report["given_back"] == 0
    assert sequences == sorted(sequences)
    assert consumer.report is None and consumer.close() is None
    assert list(consumer) == []
    assert list(baler.consume(uri)) == []


def test_chunks_without_an_acknowledgement_come_again(uri: str) -> None:
    first = []
    with baler.consume(uri) as consumer:
        for number, delivery in enumerate(consumer):
            if number == 5:
                break
            first.append(delivery.identity)
            if number != 3:
                delivery.ack()
    # A position cannot pass a chunk that is not settled.
    with baler.consume(uri) as again:
        held = [next(again), next(again)]
        assert [it.identity for it in held] == first[3:5]
        held.clear()
        # The medium delivers them to the same consumer, too.
        assert next(again).identity == first[3]


def test_a_chunk_that_is_given_back_again_and_again_goes_to_the_quarantine(
    uri: str, tmp_path: Path
) -> None:
    quarantine = tmp_path / "quarantine"
    given_back = 0
    with baler.consume(uri, quarantine=str(quarantine), max_attempts=2, demand=1) as consumer:
        for delivery in consumer:
            if delivery.identity and delivery.identity["sequence"] == 4:
                given_back += 1
                delivery.give_back("no room for four")
            else:
                delivery.ack()
        report = consumer.close()
    assert given_back == 2
    assert report is not None and report["quarantined"] == 1
    (document,) = quarantine.glob("*.json")
    assert "no room for four" in document.read_text()


def test_an_acknowledgement_after_the_end_is_an_error(uri: str) -> None:
    consumer = baler.consume(uri)
    delivery = next(consumer)
    consumer.close()
    with pytest.raises(baler.Error, match="has ended"):
        delivery.ack()
    assert next(baler.consume(uri)).is_redelivered is False


def test_a_killed_consumer_loses_nothing(uri: str) -> None:
    script = (
        "import baler, os, sys\n"
        "for number, delivery in enumerate(baler.consume(sys.argv[1])):\n"
        "    if number == 4: os.kill(os.getpid(), 9)\n"
        "    print(delivery.identity['sequence'], flush=True)\n"
        "    delivery.ack()\n"
    )
    died = subprocess.run([sys.executable, "-c", script, uri], capture_output=True, text=True)
    assert died.returncode == -9, died.stderr
    acknowledged = [int(line) for line in died.stdout.split()]
    rest = []
    for delivery in baler.consume(uri):
        assert delivery.identity is not None
        rest.append(delivery.identity["sequence"])
        delivery.ack()
    assert len(acknowledged) == 4
    # The last acknowledgements may not have been on disk.
    assert set(acknowledged) | set(rest) == set(range(rest[-1] + 1))


def test_wrong_settings_say_what_is_right() -> None:
    with pytest.raises(ValueError, match="did you mean file:"):
        baler.consume("fiel:orders")
    with pytest.raises(ValueError, match="idle_timeout is -1"):
        baler.consume("file:orders", idle_timeout=-1)
    with pytest.raises(baler.Error, match="no-such-folder"):
        baler.consume("file:/no-such-folder")
    with pytest.raises(ValueError, match="constumer is unknown; did you mean consumer"):
        baler.consume("file:/orders?constumer=a")


def test_an_idle_consumer_ends(tmp_path: Path) -> None:
    assert list(baler.consume(f"file:{tmp_path}", follow=True, idle_timeout=0.2)) == []

"""The data source of Spark gives the rows of ``baler.read``: all of them, and each one once."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from brokers import mock_topic
from conftest import GOLDEN, LOG_2010, ROOT, run
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from query import session

import baler

#: How often a streaming query is killed.
KILLS = int(os.environ.get("BALER_SPARK_KILLS", "20"))

#: A Kafka to try beside the mock, as host:port.
KAFKA = os.environ.get("KAFKA_BOOTSTRAP")

CALL = "OperationExecutionRecord"

README = ROOT / "python/README.md"

MEDIA = ["folder", "mock"] + (["kafka"] if KAFKA else [])


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    spark = session()
    yield spark
    spark.stop()


@pytest.fixture(params=MEDIA)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A medium without chunks."""
    match request.param:
        case "folder":
            yield str(tmp_path / "calls")
        case "mock":
            with mock_topic(tmp_path) as uri:
                yield uri
        case _:
            yield f"kafka://{KAFKA}/spark-{time.time_ns()}"


def generate(source: str, records: int, seed: int) -> None:
    to = source if source.startswith("kafka:") else f"file:{source}"
    chosen = ["--chunk-records", "50", "--lanes", "3", "--seed", str(seed)]
    run("generate", "--records", str(records), *chosen, "--to", to)


def load(spark: SparkSession, source: str, **options: str) -> DataFrame:
    return spark.read.format("baler").options(type=CALL, **options).load(source)


def figures(source: str) -> tuple[int, int, int]:
    """The number of calls, and sums over their fields, without Spark."""
    calls = pl.DataFrame(baler.read(source)[CALL])
    took = (calls["tout"] - calls["tin"]).dt.total_nanoseconds()
    return len(calls), int(calls["eoi"].sum()), int(took.sum())


def test_a_batch_has_all_records(spark: SparkSession, source: str) -> None:
    generate(source, 5_000, 1)
    calls = load(spark, source, times="ns", chunksPerPartition="7")
    assert calls.rdd.getNumPartitions() > 2
    sums = calls.select(F.count("*"), F.sum("eoi"), F.sum(F.col("tout") - F.col("tin"))).first()
    assert sums is not None
    assert tuple(sums) == figures(source)


def test_the_examples_of_the_readme(spark: SparkSession, tmp_path: Path) -> None:
    generate(str(tmp_path / "calls"), 5_000, 2)
    text = README.read_text().split("```py\n")[1].split("```")[0]
    ends = 'graph.write.parquet("graph"); traces.write.parquet("traces"); query.stop()'
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", f"{text}\n{ends}"]
    subprocess.run(command, check=True, cwd=tmp_path, env=environment)
    calls = pa.table(baler.read(tmp_path / "calls")[CALL])
    duckdb.register("calls", calls)
    graph = duckdb.execute(text.split('"""')[1]).fetchall()
    found = spark.read.parquet(str(tmp_path / "graph")).collect()
    assert sorted(map(tuple, found)) == sorted(graph) != []
    traces = spark.read.parquet(str(tmp_path / "traces")).count()
    assert traces == len(calls["traceId"].unique())
    assert spark.read.parquet(str(tmp_path / "rows")).count() == len(calls)


@pytest.mark.parametrize("path", [LOG_2010, GOLDEN / "every-type.chunk"], ids=lambda it: it.name)
def test_other_sources_are_one_partition(spark: SparkSession, path: Path) -> None:
    (table,) = list(baler.read(path))[:1]
    rows = spark.read.format("baler").option("type", table.type).load(str(path))
    assert rows.rdd.getNumPartitions() == 1
    assert rows.count() == sum(len(batch) for batch in table)
    assert rows.columns == pa.schema(table).names


def test_wrong_options_are_told(spark: SparkSession, folder: Path) -> None:
    for options, message in [
        ({"typ": CALL}, "typ is no option of baler; there are"),
        ({"times": "ms"}, 'it can be "us" or "ns"'),
        ({"maxChunksPerTrigger": "0"}, "it is a number of chunks, 1 or more"),
        ({"type": "Order"}, "have no Order"),
    ]:
        with pytest.raises(AnalysisException, match=message):
            spark.read.format("baler").options(**options).load(str(folder))


def test_a_stream_that_is_killed_has_each_row_once(source: str, tmp_path: Path) -> None:
    target, chance = tmp_path / "target", random.Random(45)
    program = [sys.executable, str(Path(__file__).with_name("query.py"))]
    killed = 0
    for seed in range(KILLS):
        generate(source, 1_000, seed)
        query = subprocess.Popen([*program, source, str(target), "8"], start_new_session=True)
        try:
            query.wait(chance.uniform(4.0, 14.0))
        except subprocess.TimeoutExpired:
            # Spark's Java and its workers, too.
            os.killpg(query.pid, signal.SIGKILL)
            query.wait()
            killed += 1
    assert killed > KILLS // 3
    subprocess.run([*program, source, str(target), "8"], check=True)
    # The sink's log names the files of complete batches.
    rows = session().read.parquet(f"{target}/rows")
    found = rows.select(F.count("*"), F.sum("eoi"), F.sum(F.col("tout") - F.col("tin"))).first()
    assert found is not None
    assert tuple(found) == figures(source)

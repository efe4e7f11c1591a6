"""A query in a process of its own, which the tests kill.

It copies a source into Parquet files by Spark's file sink, which writes each batch exactly once.
"""

import os
import sys

from pyspark.sql import SparkSession


def session() -> SparkSession:
    """Two workers in this process."""
    # Spark asks this Python for its data sources; the default is the first python3 of the path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("baler")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def copy(source: str, target: str, chunks: str) -> None:
    """Copy all chunks that are there now."""
    rows = (
        session()
        .readStream.format("baler")
        .option("type", "OperationExecutionRecord")
        .option("times", "ns")
        .option("maxChunksPerTrigger", chunks)
        .load(source)
    )
    query = (
        rows.writeStream.format("parquet")
        .option("checkpointLocation", f"{target}/checkpoint")
        .option("path", f"{target}/rows")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    copy(*sys.argv[1:])

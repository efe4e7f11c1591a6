"""Where Spark looks for the data source ``baler``."""

from baler.spark import BalerDataSource as DefaultSource

__all__ = ["DefaultSource"]

"""Records of ``logging`` as records of Baler."""

import logging

from ._baler import Collector


class LogHandler(logging.Handler):
    """Sends each log record as a record of the type ``python.LogRecord``.

    The collector is bounded: a log record that finds no room is dropped and counted, and the program
    goes on.
    """

    def __init__(self, collector: Collector, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self.collector = collector

    def emit(self, record: logging.LogRecord) -> None:
        try:
            exception = None
            if record.exc_info:
                formatter = self.formatter or logging.Formatter()
                exception = formatter.formatException(record.exc_info)
            self.collector.emit(
                "python.LogRecord",
                int(record.created * 1_000_000) * 1_000,
                level=record.levelname,
                logger=record.name,
                message=record.getMessage(),
                function=record.funcName,
                file=record.pathname,
                line=record.lineno,
                process=record.process,
                thread=record.threadName,
                exception=exception,
            )
        except Exception:
            self.handleError(record)

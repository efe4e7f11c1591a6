"""CPU time and memory of a program, for the measurements beside this file."""

import os
import signal
import subprocess
import tempfile
import threading
import time
from typing import NamedTuple

# The time limit of one run.
SECONDS = 600


class Used(NamedTuple):
    cpu: float
    memory: int
    output: bytes


def use(command, feed=None, output=None, env=None, terminate=False):
    """Runs a program to its end, and returns the CPU time and the most memory that it took.

    `feed` gives it work meanwhile. With `terminate` it is ended by SIGTERM after that.
    """
    command = [str(word) for word in command]
    with tempfile.TemporaryFile() as text, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=output or text, stderr=errors, env=env)
        limit = threading.Timer(SECONDS, process.kill)
        limit.start()
        try:
            if feed:
                feed(process)
            if terminate:
                process.send_signal(signal.SIGTERM)
        except BaseException:
            process.kill()
            raise
        finally:
            # Unlike `wait`, it returns what this one process used.
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            limit.cancel()
        text.seek(0)
        errors.seek(0)
        if process.returncode:
            told = errors.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}\n{told}")
        return Used(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, text.read())


def address(file, process):
    """Waits for the address in a file of `--port-file`."""
    while not (file.exists() and file.read_text().strip()):
        if process.poll() is not None:
            raise RuntimeError("the program has ended before it listened")
        time.sleep(0.01)
    return file.read_text().strip()

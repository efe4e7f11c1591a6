"""The client in Python."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from peer import CLIENTS, PythonClient, Receiver, example_of
from suite import Suite


class PythonTest(Suite, unittest.TestCase):
    is_fast = True
    open = PythonClient

    def test_example_of_the_readme_runs(self):
        receiver = Receiver(1)
        self.addCleanup(receiver.end)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "example.py")
            path.write_text(example_of("python/README.md", "python"))
            args = [sys.executable, str(path), receiver.uri]
            environment = {"PYTHONPATH": str(CLIENTS / "python")}
            run = subprocess.run(args, env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)
        # 65 is that of a receiver without the protocol, which refuses Hello.
        (record,) = receiver.records()
        self.assertEqual(record["fields"]["operationSignature"], "public void com.shop.Cart.add(int)")

    def test_wrong_record_ends_nothing(self):
        client = PythonClient("kieker+tcp://127.0.0.1:1")
        self.assertFalse(client.client.send(object()))
        self.assertFalse(client.send(None, 1))
        self.assertEqual(client.close(0)["dropped_invalid"], 2)
        self.assertFalse(client.send("late", 1))
        self.assertEqual(client.stats()["dropped_closed"], 1)


if __name__ == "__main__":
    unittest.main()

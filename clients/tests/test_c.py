"""The client in C, as it is and under sanitizers. `CC` names another compiler than gcc."""

import functools
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from peer import CLIENTS, CClient, Receiver, example_of
from suite import Suite

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{CLIENTS / 'c'}"]


def compile_c(sources, output, *flags):
    sources = [str(source) for source in [CLIENTS / "c/baler.c", *sources]]
    subprocess.run([os.environ.get("CC", "gcc"), *STRICT, *flags, *sources, "-o", str(output)], check=True)


class CTest(Suite, unittest.TestCase):
    is_fast = True
    flags = ["-O2"]
    # A sanitizer needs a fixed layout of the address space with some kernels.
    prefix = []

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        driver = Path(folder.name, "driver")
        compile_c([CLIENTS / "c/tests/driver.c"], driver, *cls.flags)
        cls.open = staticmethod(functools.partial(CClient, [*cls.prefix, str(driver)]))


class AddressTest(CTest):
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


class ThreadTest(CTest):
    is_fast = False
    flags = ["-O1", "-g", "-fsanitize=thread"]
    prefix = ["setarch", "-R"]


class ExampleTest(unittest.TestCase):
    def test_example_of_the_readme_runs(self):
        receiver = Receiver(1)
        self.addCleanup(receiver.end)
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder, "example.c"), Path(folder, "example")
            source.write_text(example_of("c/README.md", "c"))
            compile_c([source], program, "-O2")
            run = subprocess.run([program, receiver.uri], capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)
        # 65 is that of a receiver without the protocol, which refuses Hello.
        (record,) = receiver.records()
        self.assertEqual(record["fields"]["operationSignature"], "public void com.shop.Cart.add(int)")


if __name__ == "__main__":
    unittest.main()

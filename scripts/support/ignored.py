#!/usr/bin/env python3
"""Lists the ignored tests with their reasons, as the test binaries themselves give them.

Arguments are passed on to `cargo nextest list`. A test ignored without a reason is an error.
"""

import json
import os
import subprocess
import sys


def main() -> int:
    listing = subprocess.run(
        ["cargo", "nextest", "list", "--run-ignored", "all", "--ignore-default-filter"]
        + ["--message-format", "json"]
        + sys.argv[1:],
        stdout=subprocess.PIPE,
        check=False,
    )
    if listing.returncode != 0:
        return listing.returncode
    # The tests of a proc-macro crate load the compiler's own standard library.
    library = subprocess.run(
        ["rustc", "--print", "target-libdir"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    environment = {**os.environ, "LD_LIBRARY_PATH": library, "DYLD_LIBRARY_PATH": library}

    without_reason = []
    for suite in json.loads(listing.stdout)["rust-suites"].values():
        cases = suite["testcases"].items()
        names = [
            name
            for name, case in cases
            if case["ignored"] and case["filter-match"]["status"] == "matches"
        ]
        if not names:
            continue
        # Asked for ignored tests by name, libtest runs nothing and prints the reasons.
        told = subprocess.run(
            [suite["binary-path"], "--exact", "--color", "never", "--test-threads", "1", *names],
            cwd=suite["cwd"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        for name in names:
            start = f"test {name} ... ignored"
            line = next((line for line in told.splitlines() if line.startswith(start)), start)
            reason = line[len(start) :].lstrip(", ")
            if not reason:
                without_reason.append(name)
            print(f"{suite['binary-id']} {name}: {reason or 'NO REASON GIVEN'}")
    for name in without_reason:
        print(f'{name}: write #[ignore = "reason"]', file=sys.stderr)
    return 1 if without_reason else 0


if __name__ == "__main__":
    sys.exit(main())

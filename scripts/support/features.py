#!/usr/bin/env python3
"""Lints every crate that has features: without any, then with each one alone.

Arguments (such as --locked) are passed on to cargo.
"""

import json
import subprocess
import sys


def main() -> int:
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--no-deps", "--format-version", "1"],
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    )
    failures = []
    for package in metadata["packages"]:
        features = sorted(set(package["features"]) - {"default"})
        if not features:
            continue
        for feature in ["", *features]:
            combination = f"{package['name']} --no-default-features"
            combination += f" --features {feature}" if feature else ""
            print(f"-- {combination}", flush=True)
            command = ["cargo", "clippy", "--quiet", *sys.argv[1:], "-p", *combination.split()]
            if subprocess.run([*command, "--", "-D", "warnings"], check=False).returncode != 0:
                failures.append(combination)
    for combination in failures:
        print(f"failed: {combination}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Builds and runs every example of the workspace: each must end well by itself within a minute.

Arguments (such as --locked) are passed on to cargo. An example that cannot run alone, because it
wants arguments or a broker, says so in its crate's Cargo.toml:

    [package.metadata.examples]
    not-run = ["its_name"]
"""

import json
import subprocess
import sys

SECONDS = 60


def main() -> int:
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--no-deps", "--format-version", "1"],
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    )
    not_run = {
        (package["name"], name)
        for package in metadata["packages"]
        for name in ((package["metadata"] or {}).get("examples") or {}).get("not-run", [])
    }
    packages = {package["id"]: package["name"] for package in metadata["packages"]}
    build = subprocess.run(
        ["cargo", "build", "--workspace", "--all-features", "--examples", *sys.argv[1:]]
        + ["--message-format", "json-render-diagnostics"],
        stdout=subprocess.PIPE,
        check=False,
    )
    if build.returncode != 0:
        return build.returncode

    failures = []
    count = 0
    for line in build.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] != "compiler-artifact" or "example" not in message["target"]["kind"]:
            continue
        package, name = packages[message["package_id"]], message["target"]["name"]
        if (package, name) in not_run:
            print(f"-- {package} {name}: built, not run", flush=True)
            continue
        print(f"-- {package} {name}", flush=True)
        count += 1
        try:
            status = subprocess.run(
                [message["executable"]],
                stdin=subprocess.DEVNULL,
                timeout=SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            status = f"no end after {SECONDS} s"
        if status != 0:
            failures.append(f"{package} {name}: {status}")
    for failure in failures:
        print(f"failed: {failure}", flush=True)
    print(f"{count} examples run", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

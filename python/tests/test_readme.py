"""Every block of Python in README.md runs, with a folder of calls as README.md makes it."""

import re
from pathlib import Path

import pytest
from conftest import ROOT, run

README = (ROOT / "python/README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands of README.md ran."""
    folder = tmp_path_factory.mktemp("readme")
    command = next(line for line in README.splitlines() if line.startswith("baler generate"))
    *arguments, to = command.split()[1:]
    run(*arguments, to.replace("file:", f"file:{folder}/"))
    return folder


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_runs(
    block: str, clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(clone)
    exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out


def test_a_result_takes_ten_lines() -> None:
    first = README.split("## ")[0]
    commands = re.findall(r"^```(?:sh|python)\n(.*?)^```$", first, re.DOTALL | re.MULTILINE)[:2]
    lines = [line for block in commands for line in block.splitlines() if line]
    assert len(lines) <= 10, lines

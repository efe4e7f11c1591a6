"""What README.md and the notebook show runs, with a folder of calls as README.md makes it."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import deltalake
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
    before = set(clone.iterdir())
    exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out or set(clone.iterdir()) - before, "it shows or writes something"


def test_the_notebook_runs(
    clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(clone)
    notebook = json.loads((ROOT / "python/notebook/response-times.ipynb").read_text())
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "response-times.ipynb", "exec"), names)
    assert "operation" in capsys.readouterr().out
    assert (clone / "operations.html").exists()


def test_the_command_for_tables_runs(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(clone)
    (command,) = (it for it in README.splitlines() if it.startswith("python -m baler.tables"))
    subprocess.run([sys.executable, *command.split()[1:]], check=True)
    (table,) = (clone / "tables").iterdir()
    assert len(deltalake.DeltaTable(table).to_pyarrow_table()) == 20_000


def test_a_result_takes_ten_lines() -> None:
    first = README.split("## ")[0]
    commands = re.findall(r"^```(?:sh|python)\n(.*?)^```$", first, re.DOTALL | re.MULTILINE)[:2]
    lines = [line for block in commands for line in block.splitlines() if line]
    assert len(lines) <= 10, lines

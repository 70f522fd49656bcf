"""The examples of the README run, in their order and in one directory."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import lithify

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)


def test_every_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    assert len(BLOCKS) >= 8
    for number, block in enumerate(BLOCKS, 1):
        exec(compile(block, f"README example {number}", "exec"), names)


def test_the_first_example_is_short() -> None:
    assert len(BLOCKS[0].splitlines()) <= 10


def test_the_package_says_what_it_does() -> None:
    tried = doctest.testmod(lithify)
    assert tried.attempted >= 3 and tried.failed == 0

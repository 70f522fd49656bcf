"""Databases for tests, each in a directory of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lithify

# Runs by itself, with the module plyvel replaced.
collect_ignore = ["plyvel_kit"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


@pytest.fixture
def db(path: Path) -> Iterator[lithify.Db]:
    with lithify.Db(path) as db:
        yield db


@pytest.fixture
def rocks(db: lithify.Db) -> lithify.Db:
    """Ten rows, key-0 to key-9."""
    db.update((b"key-%d" % number, b"value-%d" % number) for number in range(10))
    return db

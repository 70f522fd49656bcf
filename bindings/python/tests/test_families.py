"""Column families: mappings of their own in one database."""

from __future__ import annotations

from pathlib import Path

import pytest

import lithify


def test_families_are_apart(db: lithify.Db) -> None:
    rocks, logs = db.column_family("rocks"), db.column_family("logs", compression="zstd-1")
    db[b"a"], rocks[b"a"], logs[b"a"] = b"0", b"1", b"2"
    assert (db[b"a"], rocks[b"a"], logs[b"a"]) == (b"0", b"1", b"2")
    assert db.column_families() == ["rocks", "logs", "default"]
    assert rocks.name == "rocks" and db.name == "default"
    assert isinstance(db, lithify.ColumnFamily) and repr(rocks).startswith("<lithify.ColumnFamily")


def test_a_family_keeps_its_options(path: Path) -> None:
    with lithify.Db(path) as db:
        db.column_family("rocks", fanout=5)
    with lithify.Db(path) as db:
        assert db.column_family("rocks").options["fanout"] == "5"
        assert db.column_family("rocks", fanout=6).options["fanout"] == "6"
        assert db.column_family("rocks", options="fanout=7").options["fanout"] == "7"


def test_a_family_that_is_not_there(db: lithify.Db) -> None:
    with pytest.raises(lithify.NotFoundError, match="create=True"):
        db.column_family("rocks", create=False)
    with pytest.raises(lithify.NotFoundError):
        db.drop_column_family("rocks")
    with pytest.raises(lithify.InvalidArgumentError):
        db.column_family("")


def test_a_dropped_family_says_so(db: lithify.Db) -> None:
    rocks = db.column_family("rocks")
    rocks[b"a"] = b"1"
    db.drop_column_family("rocks")
    for call in (lambda: rocks.get(b"a"), lambda: rocks.put(b"a", b""), lambda: list(rocks)):
        with pytest.raises(lithify.ClosedError, match="dropped"):
            call()
    assert db.column_families() == []


def test_a_family_may_be_the_default_one(db: lithify.Db) -> None:
    assert db.column_families() == []
    family = db.column_family("default", fanout=4)
    family[b"a"] = b"1"
    assert db[b"a"] == b"1" and db.options["fanout"] == "4"


def test_the_default_family_is_dropped_and_made_again(db: lithify.Db) -> None:
    db[b"a"] = b"1"
    again = db.column_family("default")
    db.drop_column_family("default")
    assert b"a" not in db and b"a" not in again and db.column_families() == []
    again[b"b"] = b"2"
    assert db[b"b"] == b"2" and list(db) == [b"b"]


def test_rows_expire(db: lithify.Db) -> None:
    sessions = db.column_family("sessions", time_to_live_s=3600)
    sessions[b"a"] = b"1"
    assert sessions[b"a"] == b"1"
    assert sessions.options["time_to_live_s"] == "3600"

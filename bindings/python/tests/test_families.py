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


def test_a_handle_of_another_database_is_refused(db: lithify.Db, tmp_path: Path) -> None:
    db.column_family("rocks")[b"a"] = b"here"
    with lithify.Db(tmp_path / "other") as other:
        for foreign in (other.column_family("rocks"), other):
            for call in (
                lambda: db.snapshot().column_family(foreign),
                lambda: db.transaction().column_family(foreign),
                lambda: db.batch().column_family(foreign),
            ):
                with pytest.raises(lithify.InvalidArgumentError, match="another database"):
                    call()
    assert db.snapshot().column_family("rocks")[b"a"] == b"here"


def test_a_handle_of_a_dropped_family_does_not_reach_its_successor(path: Path) -> None:
    with lithify.Db(path) as db:
        old = db.column_family("rocks")
        reader = lithify.Db(path, read_only=True)
        seen = reader.column_family("rocks")
        db.drop_column_family("rocks")
        db.column_family("rocks")[b"a"] = b"new"
        for call in (
            lambda: old[b"a"],
            lambda: db.snapshot().column_family(old),
            lambda: db.transaction().column_family(old),
            lambda: db.batch().column_family(old),
        ):
            with pytest.raises(lithify.ClosedError, match="dropped"):
                call()
        reader.refresh()
        with pytest.raises(lithify.ClosedError, match="dropped"):
            seen[b"a"]
        with pytest.raises(lithify.ClosedError, match="dropped"):
            reader.snapshot().column_family(seen)
        assert reader.column_family("rocks")[b"a"] == b"new"
        reader.close()


def test_an_option_that_is_named_leaves_the_others(path: Path) -> None:
    with lithify.Db(path, fanout=4) as db:
        db.column_family("rocks", compression="zstd-9", filter_bits_per_key=20)
        rocks = db.column_family("rocks", block_size_bytes=8192)
        options = rocks.options
        assert options["compression"].startswith("zstd-9")
        assert (options["filter_bits_per_key"], options["block_size_bytes"]) == ("20", "8192")
        # It agrees with what the family has, not with the defaults.
        db.column_family("bare", filter_bits_per_key=0)
        with pytest.raises(lithify.InvalidArgumentError, match="filter_bits_per_key"):
            db.column_family("bare", prefix_length_bytes=4)
        db.drop_column_family("bare")
    with lithify.Db(path, table_bytes="1MiB") as db:
        assert (db.options["fanout"], db.options["table_bytes"]) == ("4", str(1 << 20))
        assert db.column_family("rocks").options == options

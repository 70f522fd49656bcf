"""Statistics, explanations, checkpoints, backups, compaction, buffers, ingests."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import pytest

import lithify


def test_statistics_are_a_dictionary_and_a_page(rocks: lithify.Db) -> None:
    rocks.flush()
    stats = rocks.stats()
    assert stats["counters"]["puts"] == 10
    assert stats["families"][0]["name"] == "default"
    assert "** Levels" in str(stats) and "Levels" not in repr(stats)
    assert "lithify_" in rocks.metrics()


def test_an_explanation(path: Path) -> None:
    with lithify.Db(path, compression="auto:space") as db:
        db.update((b"%06d" % number, b"basalt is igneous" * 20) for number in range(2000))
        db.flush()
        explained = db.explain()
        assert explained["family"] == "default" and explained["setting"] == "auto:space"
        assert explained["levels"][0]["files"] >= 1 and "default:" in str(explained)
    with lithify.Db(path.with_name("empty")) as db:
        assert db.explain() == {} and str(db.explain()) == "nothing was written yet"


def test_flush_and_compaction(rocks: lithify.Db) -> None:
    rocks.flush()
    rocks.compact_range(b"key-0", b"key-5")
    rocks.compact_range()
    rocks.wait_for_compaction()
    rocks.sync()
    assert len(list(rocks)) == 10


def test_a_checkpoint_is_a_database(rocks: lithify.Db, tmp_path: Path) -> None:
    rocks.flush()
    made = rocks.checkpoint(tmp_path / "copy")
    assert made["linked_tables"] == 1 and made["path"] == str(tmp_path / "copy")
    rocks[b"late"] = b""
    with lithify.Db(tmp_path / "copy") as copy:
        assert len(list(copy)) == 10
    assert rocks.checkpoint(tmp_path / "far", flush=True, copy=True)["copied_tables"] >= 1
    with pytest.raises(lithify.AlreadyExistsError) as refused:
        rocks.checkpoint(tmp_path / "copy")
    assert isinstance(refused.value, FileExistsError)


def test_backups_are_made_and_restored(rocks: lithify.Db, tmp_path: Path) -> None:
    with lithify.BackupStore(tmp_path / "store") as store:
        with pytest.raises(lithify.NotFoundError, match="empty"):
            store.restore(tmp_path / "none")
        monday = store.create(rocks, note="monday")
        rocks[b"tuesday"] = b"rain"
        store.create(rocks, flush=True)
        assert [(backup["id"], backup["note"]) for backup in store.list()] == [
            (monday["id"], "monday"),
            (monday["id"] + 1, ""),
        ]
        assert store.verify() == {monday["id"]: [], monday["id"] + 1: []}
        store.restore(tmp_path / "monday", monday["id"])
        store.restore(tmp_path / "latest")
        assert store.purge(1) == [monday["id"]]
        with pytest.raises(lithify.NotFoundError):
            store.delete(monday["id"])
    with lithify.Db(tmp_path / "monday") as db:
        assert b"tuesday" not in db and len(list(db)) == 10
    with lithify.Db(tmp_path / "latest") as db:
        assert db[b"tuesday"] == b"rain"
    with pytest.raises(lithify.ClosedError):
        store.list()


def test_a_sound_database(rocks: lithify.Db) -> None:
    rocks.flush()
    rocks.close()
    report = lithify.verify(rocks.path, families=["default"])
    assert report["sound"] and str(report)


def test_a_buffer_copies_nothing_and_stays(db: lithify.Db) -> None:
    value = bytes(range(256)) * 64
    db[b"a"], db[b"empty"] = value, b""
    db.flush()
    buffer = db.get_buffer(b"a")
    assert buffer is not None and db.get_buffer(b"b") is None
    view = memoryview(buffer)
    assert view.readonly and view.nbytes == len(buffer) == len(value)
    assert bytes(buffer) == value and view[256:512] == value[256:512]
    assert b"".join([buffer]) == value
    empty = db.get_buffer(b"empty")
    assert empty is not None and bytes(empty) == b"" and len(memoryview(empty)) == 0
    with pytest.raises(TypeError):
        view[0] = 1
    db[b"copy"] = buffer
    assert db[b"copy"] == value
    del buffer, db[b"a"]
    db.compact_range()
    db.close()
    gc.collect()
    assert view == value


def test_buffers_are_let_go(db: lithify.Db) -> None:
    db[b"a"] = bytes(1000)
    buffer = db.get_buffer(b"a")
    before = sys.getrefcount(type(buffer))
    for _ in range(100):
        db.get_buffer(b"a")
    assert sys.getrefcount(type(buffer)) <= before + 1
    with pytest.raises(TypeError):
        lithify.Buffer()
    with pytest.raises(TypeError):
        object.__new__(lithify.Buffer)


def test_an_ingest_of_pairs(db: lithify.Db) -> None:
    done = db.ingest((b"%06d" % number, b"granite") for number in range(10_000))
    assert done["rows"] == 10_000 and done["levels"] and done["table_bytes"] > 0
    assert db[b"000007"] == b"granite" and sum(1 for _ in db) == 10_000
    assert db.column_family("rocks").ingest({b"a": b"1", b"b": b"2"})["rows"] == 2
    assert db.ingest([])["rows"] == 0


def test_an_ingest_out_of_order_leaves_nothing(db: lithify.Db) -> None:
    with pytest.raises(lithify.InvalidArgumentError, match="b"):
        db.ingest([(b"b", b""), (b"a", b"")])
    with pytest.raises(TypeError):
        db.ingest([(b"a", b"1"), (b"b", "2")])
    assert not db


def test_an_ingest_of_an_arrow_table(db: lithify.Db) -> None:
    arrow = pytest.importorskip("pyarrow")
    keys = [b"%06d" % number for number in range(5000)]
    for kind in (arrow.binary(), arrow.large_binary(), arrow.binary_view(), arrow.binary(6)):
        db.clear()
        table = arrow.table(
            {
                "rock": arrow.array(["basalt"] * 5000, arrow.string()),
                "key": arrow.array(keys, kind),
            }
        )
        assert db.ingest(table, key="key", value="rock")["rows"] == 5000
        assert db[b"004999"] == b"basalt"
    chunked = arrow.table({"key": arrow.chunked_array([keys[:7], keys[7:]]), "value": keys})
    assert db.column_family("other").ingest(chunked)["rows"] == 5000


@pytest.mark.parametrize(
    "columns, error, text",
    [
        ({"key": [b"a"]}, TypeError, "a column of keys and one of values"),
        ({"key": [1], "value": [b"a"]}, TypeError, "Int64"),
        ({"key": [b"a", None], "value": [b"a", b"b"]}, ValueError, "null"),
        ({"key": [b"b", b"a"], "value": [b"a", b"b"]}, ValueError, "ascend|behind|order"),
    ],
)
def test_tables_that_are_no_rows(
    db: lithify.Db, columns: dict[str, Any], error: type[Exception], text: str
) -> None:
    arrow = pytest.importorskip("pyarrow")
    with pytest.raises(error, match=text):
        db.ingest(arrow.table(columns))
    with pytest.raises(ValueError, match="no column \"rock\""):
        db.ingest(arrow.table({"key": [b"a"], "value": [b"a"]}), key="rock")
    assert not db

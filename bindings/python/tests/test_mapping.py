"""A Db, and every column family, is a mapping of bytes to bytes."""

from __future__ import annotations

import array
import ctypes
import gc
import os
import struct
import sys
import weakref
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

import pytest

import lithify


def test_rows_are_put_read_and_deleted(db: lithify.Db) -> None:
    db[b"basalt"] = b"igneous"
    assert db[b"basalt"] == b"igneous"
    assert b"basalt" in db and b"chalk" not in db
    assert db.get(b"chalk") is None
    assert db.get(b"chalk", 7) == 7
    del db[b"basalt"]
    assert b"basalt" not in db
    with pytest.raises(KeyError) as refused:
        db[b"basalt"]
    assert refused.value.args == (b"basalt",)
    with pytest.raises(KeyError):
        del db[b"basalt"]
    db.delete(b"basalt")


def test_empty_values_and_zero_bytes_are_kept(db: lithify.Db) -> None:
    db[b""] = b"key of no byte"
    db[b"a\0b"] = b""
    assert list(db.items()) == [(b"", b"key of no byte"), (b"a\0b", b"")]


def test_it_is_a_mutable_mapping(db: lithify.Db) -> None:
    assert isinstance(db, MutableMapping)
    assert isinstance(db.column_family("rocks"), MutableMapping)
    assert isinstance(db.snapshot(), Mapping)
    assert not isinstance(db.snapshot(), MutableMapping)


def test_the_methods_of_a_mapping(db: lithify.Db) -> None:
    db.update({b"a": b"1", b"b": b"2"})
    db.update([(b"c", b"3"), [b"d", b"4"]])  # type: ignore[list-item]
    db.update((b"%04d" % number, b"x") for number in range(3000))
    assert sum(1 for _ in db) == 3004
    assert db.setdefault(b"a", b"other") == b"1"
    assert db.setdefault(b"e", b"5") == b"5"
    assert db.pop(b"e") == b"5"
    assert db.pop(b"e", None) is None and db.pop(b"e", default=7) == 7
    db.update()
    with pytest.raises(KeyError):
        db.pop(b"e")
    assert db.popitem() == (b"0000", b"x")
    db.clear()
    assert list(db) == []
    assert not db
    with pytest.raises(KeyError):
        db.popitem()
    db[b"\xff" * 3] = b"last"
    assert db and dict(db.items()) == {b"\xff\xff\xff": b"last"}
    assert dict(db) == {b"\xff\xff\xff": b"last"}


def test_a_pop_and_a_clear_of_nothing(db: lithify.Db) -> None:
    db.clear()
    db.delete_range(b"a", b"b")
    assert db.pop(b"a", b"none") == b"none"


def test_len_points_at_the_estimate(db: lithify.Db) -> None:
    db.update((b"%d" % number, b"") for number in range(100))
    with pytest.raises(TypeError, match="approximate_len"):
        len(db)
    assert db.approximate_len() == 100
    db.flush()
    assert db.approximate_len() == 100
    assert db.approximate_size() > 0
    assert db.approximate_size(b"x") == 0


@pytest.mark.parametrize(
    "key, advice",
    [("text", "encode"), (7, "to_bytes"), (None, "delete"), (1.5, "encode"), ([1], "encode")],
)
def test_keys_and_values_are_bytes_alone(db: lithify.Db, key: Any, advice: str) -> None:
    for call in (
        lambda: db.put(key, b""),
        lambda: db.put(b"", key),
        lambda: db.get(key),
        lambda: db.delete(key),
        lambda: db[key],
        lambda: key in db,
        lambda: db.batch().put(b"a", key),
        lambda: db.multi_get([b"a", key]),
        lambda: db.update([(b"a", key)]),
        lambda: db.ingest([(key, b"")]),
        lambda: db.transaction().put(key, b""),
    ):
        with pytest.raises(TypeError, match="bytes-like") as refused:
            call()
        assert advice in str(refused.value)


def test_everything_with_the_buffer_protocol_is_bytes(db: lithify.Db) -> None:
    db[bytearray(b"a")] = memoryview(b"value")[1:4]
    db[memoryview(b"b")] = array.array("B", [1, 2])
    db[b"c"] = memoryview(b"abcdef")[::2]
    assert db[bytearray(b"a")] == b"alu"
    assert db.multi_get([b"b", bytearray(b"c"), b"d"]) == [b"\1\2", b"ace", None]


def test_writes_that_depend_on_what_is_there(db: lithify.Db) -> None:
    assert db.put_if_absent(b"printer", b"anne")
    assert not db.put_if_absent(b"printer", b"bob")
    assert not db.compare_and_put(b"printer", b"bob", b"carl")
    assert db.compare_and_put(b"printer", b"anne", b"carl")
    assert not db.compare_and_delete(b"printer", b"anne")
    assert db.compare_and_delete(b"printer", b"carl")
    assert b"printer" not in db


def test_a_range_is_deleted_by_one_write(rocks: lithify.Db) -> None:
    rocks.delete_range(b"key-2", b"key-8")
    assert list(rocks) == [b"key-0", b"key-1", b"key-8", b"key-9"]
    with pytest.raises(lithify.InvalidArgumentError):
        rocks.delete_range(b"b", b"a")


def test_rows_are_there_after_reopening(path: Path) -> None:
    with lithify.Db(path) as db:
        db[b"a"] = b"1"
        db.put(b"b", b"2", durability="sync")
        db.delete(b"c", durability="sync")
    with lithify.open(path, create_if_missing=False) as db:
        assert dict(db.items()) == {b"a": b"1", b"b": b"2"}
        assert db.path == str(path)


def test_a_path_in_bytes(path: Path) -> None:
    with lithify.Db(os.fsencode(path)) as db:
        assert db.path == str(path)
        db.checkpoint(os.fsencode(path) + b"-copy")
    assert lithify.verify(os.fsencode(path))["sound"]
    lithify.destroy(os.fsencode(path) + b"-copy")
    assert not path.with_name("db-copy").exists()


def test_references_may_be_weak(path: Path) -> None:
    db = lithify.Db(path)
    kept = weakref.WeakSet[lithify.Rows]([db, db.column_family("rocks")])
    assert db in kept
    del db
    gc.collect()
    assert len(kept) == 0


def test_limits_are_said(db: lithify.Db) -> None:
    with pytest.raises(lithify.LimitExceededError, match="65"):
        db[b"k" * 70_000] = b""
    assert not db


def test_options_as_keywords_and_as_text(path: Path) -> None:
    options = "memtable_bytes=1MiB durability=sync compression=zstd-3"
    with lithify.Db(path, options=options, memtable_bytes=2 << 20, fanout=4) as db:
        assert db.database_options["memtable_bytes"] == str(2 << 20)
        assert db.database_options["durability"] == "sync"
        assert db.options["fanout"] == "4"
        assert db.options["compression"].startswith("zstd-3")
        assert set(db.database_options) == set(lithify.DATABASE_OPTIONS)
        assert set(db.options) == set(lithify.FAMILY_OPTIONS)
        assert lithify.FAMILY_OPTIONS["fanout"]["default"] == "8"


def test_wrong_options_are_refused(path: Path) -> None:
    with pytest.raises(TypeError, match="no option \"colour\".*memtable_bytes"):
        lithify.Db(path, colour="red")  # type: ignore[call-arg]
    with pytest.raises(lithify.InvalidArgumentError, match="fanout"):
        lithify.Db(path, fanout=1)
    with pytest.raises(ValueError, match="colour"):
        lithify.Db(path, options="colour=red")
    with pytest.raises(TypeError, match="durability"):
        lithify.Db(path, durability="sync fanout=3")
    with pytest.raises(TypeError, match="fanout"):
        lithify.Db(path, fanout=None)  # type: ignore[arg-type]
    with lithify.Db(path) as db, pytest.raises(lithify.InvalidArgumentError, match="durability"):
        db.put(b"a", b"b", durability="often")


def test_merge_operators_that_come_with_the_engine(db: lithify.Db) -> None:
    counts = db.column_family("counts", merge_operator="add")
    for number in (5, 7, -2):
        counts.merge(b"visits", number.to_bytes(8, "little", signed=True))
    assert int.from_bytes(counts[b"visits"], "little") == 10
    lists = db.column_family("lists", merge_operator="append")
    with db.batch() as batch:
        batch.column_family(lists).merge(b"names", b"anne,")
        batch.column_family("lists").merge(b"names", b"bob,")
    assert lists[b"names"] == b"anne,bob,"
    with pytest.raises(lithify.InvalidArgumentError, match="merge"):
        db.merge(b"a", b"b")
    with pytest.raises(lithify.InvalidArgumentError, match="8 bytes"):
        counts.merge(b"visits", b"short")
    with pytest.raises(lithify.InvalidArgumentError, match="8 bytes"):
        counts[b"bad"] = b"short"
    assert b"bad" not in counts
    # A value from before there was an operator may still be one that it cannot fold.
    db.column_family("older")[b"bad"] = b"short"
    older = db.column_family("older", merge_operator="add")
    older.merge(b"bad", bytes(8))
    with pytest.raises(lithify.MergeError):
        older[b"bad"]


def test_texts_and_pointers_are_no_bytes(db: lithify.Db) -> None:
    class Text(str):
        pass

    kinds: list[Any] = [ctypes.c_wchar * 1, ctypes.c_char_p * 1, ctypes.c_void_p * 1, ctypes.py_object * 1]
    items: list[Any] = ["a", b"ab", 7, "ab"]
    unlike: list[Any] = [Text("ab"), *(kind(item) for kind, item in zip(kinds, items, strict=True))]
    if sys.version_info < (3, 13):
        unlike.append(array.array("u", "ab"))
    for value in unlike:
        for call in (lambda: db.put(b"a", value), lambda: db[value], lambda: value in db):
            with pytest.raises(TypeError, match="encode") as refused:
                call()
            assert type(value).__name__ in str(refused.value)
    assert not db
    db[b"a"] = array.array("d", [1.5])
    assert db[b"a"] == struct.pack("d", 1.5)


def test_arrays_of_numpy_are_bytes_unless_they_hold_text_or_pointers(db: lithify.Db) -> None:
    numpy: Any = pytest.importorskip("numpy")
    unlike: list[Any] = [
        numpy.str_("ab"),
        numpy.array(["ab"]),
        numpy.array(["ab", b"c"], object),
        numpy.zeros(1, [("size", "i4"), ("name", "U4")]),
        numpy.zeros(1, [("size", "i4"), ("any", object)]),
    ]
    for value in unlike:
        with pytest.raises(TypeError, match="encode"):
            db[b"a"] = value
    assert not db
    alike: list[Any] = [
        numpy.bytes_(b"ab"),
        numpy.array([b"ab"]),
        numpy.arange(3.0)[::2],
        numpy.array([1j]),
        numpy.array([True]),
        numpy.array([("Owu", 7)], [("OuwP", "S3"), ("&", "i4")]),
    ]
    for value in alike:
        db[b"a"] = value
        assert db[b"a"] == value.tobytes()


def test_what_a_buffer_raises_is_passed_on(db: lithify.Db) -> None:
    view = memoryview(bytearray(b"a"))
    view.release()
    with pytest.raises(ValueError, match="released"):
        db[b"a"] = view
    if sys.version_info < (3, 12):
        return

    class Interrupted:
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def __buffer__(self, flags: int) -> memoryview:
            raise self.error

    for error in (KeyboardInterrupt(), MemoryError(), ValueError("mine")):
        value: Any = Interrupted(error)
        for call in (lambda: db.put(b"a", value), lambda: db[value], lambda: db.update([(b"a", value)])):
            with pytest.raises(type(error)):
                call()


@pytest.mark.parametrize("rows, size", [(700, 40_000), (70, 1 << 20), (3, 20 << 20)])
def test_an_update_of_large_values(path: Path, rows: int, size: int) -> None:
    with lithify.Db(path, memory_budget_bytes=64 << 20, compression="none") as db:
        db.update((b"%04d" % number, bytes(size)) for number in range(rows))
        assert sum(1 for _ in db.keys()) == rows


def test_ranges_have_open_ends(db: lithify.Db) -> None:
    longest = b"\xff" * 65_535

    def left(start: bytes | None, stop: bytes | None) -> list[bytes]:
        db.clear()
        db.update((key, b"") for key in (b"", b"g", b"h", b"\xff", longest[1:], longest))
        db.delete_range(start, stop)
        return list(db)

    assert left(b"g", None) == [b""]
    assert left(None, b"h") == [b"h", b"\xff", longest[1:], longest]
    assert left(longest[1:], None) == [b"", b"g", b"h", b"\xff"]
    assert left(longest, None) == [b"", b"g", b"h", b"\xff", longest[1:]]
    assert left(None, None) == [] and not db
    db[b"a"] = b""
    db.delete_range(b"b", None)
    assert list(db) == [b"a"]
    with pytest.raises(TypeError, match="no key"):
        db.batch().delete_range(b"a", None)  # type: ignore[arg-type]

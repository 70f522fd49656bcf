"""Iterators and cursors: ranges, prefixes, both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lithify

KEYS = [b"a", b"aa", b"ab", b"ab\xff", b"ac", b"b", b"\xff", b"\xff\xff", b"\xff\xffa"]


@pytest.fixture
def rows(db: lithify.Db) -> lithify.Db:
    db.update((key, key + b"!") for key in KEYS)
    return db


def test_keys_values_and_items(rows: lithify.Db) -> None:
    assert list(rows) == list(rows.keys()) == KEYS
    assert list(rows.values()) == [key + b"!" for key in KEYS]
    assert list(rows.items()) == [(key, key + b"!") for key in KEYS]
    assert list(reversed(rows)) == list(rows.keys(reverse=True)) == KEYS[::-1]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"prefix": b"a"},
        {"prefix": b"ab"},
        {"prefix": b"\xff"},
        {"prefix": b"\xff\xff"},
        {"prefix": b""},
        {"prefix": b"x"},
        {"start": b"ab"},
        {"start": b"ab", "include_start": False},
        {"stop": b"ab"},
        {"stop": b"ab", "include_stop": True},
        {"start": b"aa", "stop": b"b"},
        {"start": b"aa", "stop": b"b", "include_start": False, "include_stop": True},
        {"start": b"b", "stop": b"a"},
        {"start": b"b", "stop": b"b"},
        {"start": b"b", "stop": b"b", "include_stop": True},
        {"prefix": b"a", "start": b"ab"},
        {"prefix": b"a", "stop": b"ab", "include_stop": True},
        {"prefix": b"a", "start": b"0", "stop": b"z"},
        {"prefix": b"a", "start": b"b"},
    ],
)
def test_ranges_are_what_a_list_says(rows: lithify.Db, arguments: dict[str, Any]) -> None:
    def is_in(key: bytes) -> bool:
        start, stop = arguments.get("start"), arguments.get("stop")
        from_start = start is None or key > start
        from_start |= key == start and arguments.get("include_start", True)
        to_stop = stop is None or key < stop or (key == stop and arguments.get("include_stop", False))
        return bool(key.startswith(arguments.get("prefix", b"")) and from_start and to_stop)

    expected = [key for key in KEYS if is_in(key)]
    assert list(rows.keys(**arguments)) == expected
    assert list(rows.keys(reverse=True, **arguments)) == expected[::-1]
    cursor = rows.cursor(**arguments)
    found = []
    while cursor.next():
        found.append(cursor.key)
    assert found == expected


def test_an_iterator_sees_the_moment_it_was_made(rows: lithify.Db) -> None:
    keys = rows.keys()
    rows[b"aaa"] = b"late"
    del rows[b"a"]
    assert list(keys) == KEYS
    assert b"aaa" in list(rows)


def test_many_rows_come_in_chunks(db: lithify.Db) -> None:
    expected = [(b"%06d" % number, b"v" * (number % 300)) for number in range(5000)]
    db.update(expected[:3000])
    db.flush()
    db.update(expected[3000:])
    assert list(db.items()) == expected
    assert list(db.items(reverse=True)) == expected[::-1]
    large = bytes(range(256)) * 1024
    db.update((b"large-%d" % number, large) for number in range(5))
    assert list(db.values(prefix=b"large")) == [large] * 5


def test_an_iterator_ends_and_closes(rows: lithify.Db) -> None:
    keys = rows.keys(stop=b"aa")
    assert next(keys) == b"a"
    assert next(keys, None) is None and next(keys, None) is None
    with rows.keys() as keys:
        next(keys)
    with pytest.raises(lithify.ClosedError, match="iterator"):
        next(keys)
    keys.close()


def test_a_cursor_moves_both_ways(rows: lithify.Db) -> None:
    cursor = rows.cursor()
    assert not cursor.valid and cursor.key is None and cursor.value is None
    assert cursor.prev() and cursor.key == KEYS[-1]
    assert cursor.seek(b"ab0") and cursor.key == b"ab\xff" and cursor.value == b"ab\xff!"
    assert cursor.prev() and cursor.key == b"ab"
    assert cursor.next() and cursor.next() and cursor.key == b"ac"
    assert cursor.seek_for_prev(b"abz") and cursor.key == b"ab"
    assert cursor.seek_to_first() and cursor.key == b"a"
    assert not cursor.prev() and not cursor.valid
    assert cursor.seek_to_last() and not cursor.next()
    assert not cursor.seek(b"\xff\xffb")
    cursor.close()
    with pytest.raises(lithify.ClosedError, match="cursor"):
        cursor.next()
    with pytest.raises(lithify.ClosedError):
        cursor.key


def test_cursors_of_nothing(db: lithify.Db) -> None:
    assert list(db.items()) == []
    cursor = db.cursor()
    assert not cursor.next() and not cursor.seek(b"") and cursor.key is None


def test_rows_in_front_of_damage_are_given_once(path: Path) -> None:
    with lithify.Db(path, compression="none", filter_bits_per_key=0) as db:
        db.ingest((b"%06d" % number, bytes(1000)) for number in range(1000))
    table = next(path.glob("*.sst"))
    with table.open("r+b") as file:
        file.seek(table.stat().st_size // 2)
        file.write(b"\xa5" * 64)
    with lithify.Db(path) as db:
        keys = db.keys()
        found: list[bytes] = []
        while True:
            try:
                found.append(next(keys))
            except lithify.CorruptionError:
                break
        assert 300 < len(found) < 700
        assert found == [b"%06d" % number for number in range(len(found))]
        # An iterator that failed has ended.
        assert next(keys, None) is None

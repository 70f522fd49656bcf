"""`lithify.plyvel` beyond plyvel's own tests, which `./test` runs beside these."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, assume, given, settings

import lithify
from lithify import plyvel


@pytest.fixture
def name(tmp_path: Path) -> str:
    return str(tmp_path / "db")


def by_bytes(a: bytes, b: bytes) -> int:
    return (a > b) - (a < b)


def reverse(a: bytes, b: bytes) -> int:
    return by_bytes(b, a)


def test_errors_are_those_of_plyvel_and_of_lithify(name: str) -> None:
    assert issubclass(plyvel.IOError, OSError) and issubclass(plyvel.IOError, plyvel.Error)
    with pytest.raises(plyvel.Error, match="create_if_missing"):
        plyvel.DB(name)
    with plyvel.DB(name, create_if_missing=True) as db:
        with pytest.raises(plyvel.IOError):
            plyvel.DB(name)
        with pytest.raises(plyvel.IteratorInvalidError):
            db.raw_iterator().item()
        with pytest.raises(AttributeError):
            db.name = "other"  # type: ignore[misc]
    with pytest.raises(plyvel.Error, match="error_if_exists"):
        plyvel.DB(name, error_if_exists=True)
    with pytest.raises(RuntimeError):
        db.get(b"a")


def test_a_database_of_leveldb_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "CURRENT").write_text("MANIFEST-000001\n")
    for call in (
        lambda: plyvel.DB(str(tmp_path), create_if_missing=True),
        lambda: plyvel.repair_db(str(tmp_path)),
        lambda: plyvel.destroy_db(str(tmp_path)),
    ):
        with pytest.raises(plyvel.Error, match="LevelDB"):
            call()
    assert [entry.name for entry in tmp_path.iterdir()] == ["CURRENT"]


def test_options_of_leveldb_become_those_of_lithify(name: str) -> None:
    with plyvel.DB(
        name,
        create_if_missing=True,
        write_buffer_size=1,
        lru_cache_size=1 << 20,
        block_size=100,
        max_file_size=1,
        compression=None,
        bloom_filter_bits=12,
        max_open_files=7,
    ) as db:
        inside = db._db
        assert inside.database_options["memtable_bytes"] == "65536"
        assert inside.options["compression"].startswith("none")
        assert inside.options["block_size_bytes"] == "512"
        assert inside.options["table_bytes"] == "65536"
        assert inside.options["filter_bits_per_key"] == "12"


def test_a_bytewise_comparator_works_and_is_remembered(name: str) -> None:
    arguments: dict[str, Any] = {"comparator": by_bytes, "comparator_name": b"mine"}
    with plyvel.DB(name, create_if_missing=True, **arguments) as db:
        for key in (b"b", b"a", b"c", b"ab", b"", b"a"):
            db.put(key, key)
        with db.write_batch() as batch:
            batch.put(b"aa", b"")
            batch.delete(b"c")
        assert list(db.iterator(include_value=False)) == [b"", b"a", b"aa", b"ab", b"b"]
    with pytest.raises(plyvel.Error, match="does not match existing comparator mine"):
        plyvel.DB(name)
    with pytest.raises(plyvel.Error, match="yours does not match"):
        plyvel.DB(name, comparator=by_bytes, comparator_name=b"yours")
    with plyvel.DB(name, **arguments) as db:
        assert db.get(b"ab") == b"ab"


def test_another_order_is_refused_and_nothing_is_written(name: str) -> None:
    db = plyvel.DB(name, create_if_missing=True, comparator=reverse, comparator_name=b"reverse")
    db.put(b"b", b"")
    with pytest.raises(NotImplementedError, match="bytewise"):
        db.put(b"a", b"")
    with pytest.raises(plyvel.Error):
        with db.write_batch() as batch:
            batch.put(b"x", b"")
            batch.put(b"y", b"")
    assert list(db.iterator(include_value=False)) == [b"b"]
    db.close()


def test_keys_that_are_equal_by_a_comparator_alone(name: str) -> None:
    def no_case(a: bytes, b: bytes) -> int:
        return by_bytes(a.lower(), b.lower())

    db = plyvel.DB(name, create_if_missing=True, comparator=no_case, comparator_name=b"no case")
    db.put(b"a", b"")
    with pytest.raises(plyvel.ComparatorError):
        db.put(b"A", b"")
    db.put(b"a", b"again")
    db.close()


def test_properties_and_sizes(name: str) -> None:
    with plyvel.DB(name, create_if_missing=True) as db:
        db.put(b"a", bytes(1000))
        db.compact_range()
        assert db.approximate_size(b"a", b"b") > 0 and db.approximate_size(b"b", b"c") == 0
        memory = db.get_property(b"leveldb.approximate-memory-usage")
        assert memory is not None and int(memory) > 0
        tables = [db.get_property(b"leveldb.num-files-at-level%d" % level) for level in range(7)]
        assert tables.count(b"1") == 1
        assert db.get_property(b"leveldb.num-files-at-level99") is None
        assert b"level 0: 0 tables" in (db.get_property(b"leveldb.sstables") or b"")


def test_a_repair_keeps_what_was_damaged(name: str) -> None:
    with plyvel.DB(name, create_if_missing=True) as db:
        db.put(b"a", bytes(1000))
        db._db.flush()
        db.put(b"b", b"2")
    (Path(name) / "CURRENT").unlink()
    plyvel.repair_db(name)
    with plyvel.DB(name) as db:
        assert db.get(b"b") == b"2"
    assert Path(name + ".damaged").is_dir()
    with pytest.raises(plyvel.Error, match="move it away"):
        plyvel.repair_db(name)


def test_a_prefixed_database_destroys_no_other(name: str) -> None:
    with plyvel.DB(name, create_if_missing=True) as db:
        part = db.prefixed_db(b"\xff")
        part.put(b"\xff", b"1")
        db.put(b"\xfe", b"2")
        assert list(part) == [(b"\xff", b"1")]
        assert list(part.iterator(reverse=True, start=b"")) == [(b"\xff", b"1")]
        assert list(part.prefixed_db(b"\xff")) == [(b"", b"1")]
        with part.write_batch(transaction=True) as batch:
            batch.delete(b"\xff")
        assert list(db) == [(b"\xfe", b"2")]


KEYS = st.binary(max_size=2) | st.sampled_from([b"a", b"b", b"ab", b"\xff", b"\xff\xff"])
MOVES = st.one_of(
    st.sampled_from([("next",), ("next",), ("prev",), ("prev",), ("seek_to_start",), ("seek_to_stop",)]),
    st.tuples(st.just("seek"), KEYS),
)


@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(
    keys=st.sets(KEYS, max_size=8),
    start=st.none() | KEYS,
    stop=st.none() | KEYS,
    include_start=st.booleans(),
    include_stop=st.booleans(),
    is_reverse=st.booleans(),
    prefix=st.sampled_from([b"", b"a"]),
    moves=st.lists(MOVES, max_size=12),
)
def test_iterators_move_as_those_of_plyvel(
    keys: set[bytes],
    start: bytes | None,
    stop: bytes | None,
    include_start: bool,
    include_stop: bool,
    is_reverse: bool,
    prefix: bytes,
    moves: list[tuple[Any, ...]],
) -> None:
    theirs = pytest.importorskip("plyvel")
    assert theirs is not plyvel
    lower = None if start is None and not prefix else prefix + (start or b"")
    upper = None if stop is None else prefix + stop
    own = {key for key in keys if key.startswith(prefix)}
    assume(lower is None or not is_lost_by_plyvel(own, lower, upper, include_stop))
    arguments = {
        "start": start,
        "stop": stop,
        "include_start": include_start,
        "include_stop": include_stop,
        "reverse": is_reverse,
        # The value is the whole key: a key says less where plyvel has left a prefix.
        "include_key": False,
    }
    found = []
    for module in (theirs, plyvel):
        directory = tempfile.mkdtemp()
        with contextlib.closing(module.DB(directory, create_if_missing=True)) as db:
            with db.write_batch() as batch:
                for key in keys:
                    batch.put(key, b"")
            rows = db.prefixed_db(prefix) if prefix else db
            found.append(walked(rows.iterator(**arguments), moves))
        shutil.rmtree(directory)
    # After some seeks plyvel gives rows in front of the range.
    from_start = include_start or start is None
    rows_of_range = {key for key in own if lower is None or is_from(key, lower, from_start)}
    assume({row for row in found[0] if isinstance(row, bytes)} <= rows_of_range)
    assert found[1] == found[0]


def is_from(key: bytes, start: bytes, includes_start: bool) -> bool:
    return key > start or (includes_start and key == start)


def is_lost_by_plyvel(keys: set[bytes], start: bytes, stop: bytes | None, to_stop: bool) -> bool:
    """Whether the last row of a range is its start: plyvel then gives nothing backwards."""
    rows = [key for key in keys if stop is None or key < stop or (to_stop and key == stop)]
    return start in keys and max(rows, default=b"") <= start


def walked(iterator: Any, moves: list[tuple[Any, ...]]) -> list[object]:
    said: list[object] = []
    for move, *target in moves:
        try:
            said.append(next(iterator) if move == "next" else getattr(iterator, move)(*target))
        except StopIteration:
            said.append("end")
    return said + list(iterator)


def test_it_is_what_lithify_has(name: str) -> None:
    with plyvel.DB(name, create_if_missing=True) as db:
        db.put(b"a", b"1", sync=True)
    with lithify.Db(name) as own:
        assert own[b"a"] == b"1"


def test_a_range_to_compact_may_end_before_it_starts(name: str) -> None:
    with plyvel.DB(name, create_if_missing=True) as db:
        db.put(b"a", b"1")
        db.compact_range(start=b"b", stop=b"a")
        db.compact_range(stop=b"b")
        db.compact_range(start=b"b")
    with pytest.raises(RuntimeError):
        db.compact_range(start=b"b", stop=b"a")


def test_limits_of_values_and_batches(name: str) -> None:
    with plyvel.DB(name, create_if_missing=True, lru_cache_size=0) as db:
        with pytest.raises(plyvel.Error, match="64 MiB|67108864"):
            db.put(b"a", bytes((64 << 20) + 1))
        with pytest.raises(plyvel.Error, match="half"):
            with db.write_batch() as batch:
                for number in range(130):
                    batch.put(b"%d" % number, bytes(1 << 20))
        assert list(db) == []


def test_the_exception_of_a_transaction_goes_through(name: str) -> None:
    db = plyvel.DB(name, create_if_missing=True)
    with pytest.raises(ValueError, match="mine"):
        with db.write_batch(transaction=True) as batch:
            batch.put(b"a", b"1")
            db.close()
            raise ValueError("mine")

"""A database beside a dict: whatever is done to both, they say the same.

The short form runs with every test. `LITHIFY_LONG_MODEL=1` runs 100 times as many steps.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import lithify

IS_LONG = bool(os.environ.get("LITHIFY_LONG_MODEL"))

Model = dict[bytes, bytes]

# Few keys that are near each other: most operations meet something.
NEAR = st.sampled_from([b"", b"a", b"a\0", b"aa", b"ab", b"b", b"\xff", b"\xff\xff", b"\xff\xff\0"])
KEYS = st.one_of(NEAR, NEAR, NEAR, st.binary(max_size=2))
VALUES = st.binary(max_size=20) | st.sampled_from([bytes(5000), b"x" * 3000])
FAMILIES = st.sampled_from(["default", "rocks", "logs"])
SMALL: dict[str, Any] = {"memtable_bytes": 65536, "memory_budget_bytes": 4 << 20, "background_threads": 1}


RANGES = st.fixed_dictionaries(
    {
        "start": st.none() | KEYS,
        "stop": st.none() | KEYS,
        "prefix": st.none() | KEYS,
        "include_start": st.booleans(),
        "include_stop": st.booleans(),
        "reverse": st.booleans(),
    }
)


def is_in(
    key: bytes,
    start: bytes | None,
    stop: bytes | None,
    prefix: bytes | None,
    include_start: bool,
    include_stop: bool,
    reverse: bool,
) -> bool:
    """Whether a key is of the range, which is the same both ways."""
    return (
        (prefix is None or key.startswith(prefix))
        and (start is None or key > start or (include_start and key == start))
        and (stop is None or key < stop or (include_stop and key == stop))
    )


class DatabaseBesideDict(RuleBasedStateMachine):
    """Every rule does the same to the database and to a dict for each family, and compares."""

    snapshots = Bundle("snapshots")
    iterators = Bundle("iterators")

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp()
        self.model: dict[str, Model] = {}

    @initialize()
    def open(self) -> None:
        self.db = lithify.Db(f"{self.directory}/db", **SMALL)
        for name in ("default", "rocks", "logs"):
            self.model.setdefault(name, {})
        self.families = {
            "default": self.db,
            "rocks": self.db.column_family("rocks", compression="zstd-1", table_bytes=65536),
            "logs": self.db.column_family("logs", filter_bits_per_key=0),
        }

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self.db.close()
        shutil.rmtree(self.directory)

    @rule(family=FAMILIES, key=KEYS, value=VALUES)
    def put(self, family: str, key: bytes, value: bytes) -> None:
        self.families[family][key] = value
        self.model[family][key] = value

    @rule(family=FAMILIES, key=KEYS)
    def delete(self, family: str, key: bytes) -> None:
        self.families[family].delete(key)
        self.model[family].pop(key, None)

    @rule(family=FAMILIES, key=KEYS)
    def pop(self, family: str, key: bytes) -> None:
        assert self.families[family].pop(key, None) == self.model[family].pop(key, None)

    @rule(family=FAMILIES, key=KEYS, value=VALUES)
    def setdefault(self, family: str, key: bytes, value: bytes) -> None:
        expected = self.model[family].setdefault(key, value)
        assert self.families[family].setdefault(key, value) == expected

    @rule(family=FAMILIES, start=KEYS, stop=KEYS)
    def delete_range(self, family: str, start: bytes, stop: bytes) -> None:
        start, stop = min(start, stop), max(start, stop)
        self.families[family].delete_range(start, stop)
        for key in [key for key in self.model[family] if start <= key < stop]:
            del self.model[family][key]

    @rule(family=FAMILIES, rows=st.dictionaries(KEYS, VALUES, max_size=30))
    def ingest(self, family: str, rows: Model) -> None:
        self.families[family].ingest(sorted(rows.items()))
        self.model[family].update(rows)

    @rule(
        writes=st.lists(st.tuples(FAMILIES, KEYS, st.none() | VALUES), max_size=20),
        fails=st.booleans(),
    )
    def batch(self, writes: list[tuple[str, bytes, bytes | None]], fails: bool) -> None:
        with self.unless(fails), self.db.batch() as batch:
            for family, key, value in writes:
                if value is None:
                    del batch.column_family(family)[key]
                else:
                    batch.column_family(family)[key] = value
            self.fail(fails)
        if not fails:
            self.apply(writes, self.model)

    @rule(
        writes=st.lists(st.tuples(FAMILIES, KEYS, st.none() | VALUES), max_size=20),
        fails=st.booleans(),
        optimistic=st.booleans(),
    )
    def transaction(
        self, writes: list[tuple[str, bytes, bytes | None]], fails: bool, optimistic: bool
    ) -> None:
        inside = {name: dict(rows) for name, rows in self.model.items()}
        with self.unless(fails), self.db.transaction(optimistic=optimistic) as transaction:
            views = {name: transaction.column_family(name) for name in inside}
            for family, key, value in writes:
                assert views[family].get(key) == inside[family].get(key)
                if value is None:
                    views[family].delete(key)
                else:
                    views[family][key] = value
                self.apply([(family, key, value)], inside)
            for name, rows in inside.items():
                assert list(views[name].items()) == sorted(rows.items())
            self.fail(fails)
        if not fails:
            self.model = inside

    @rule(family=FAMILIES, key=KEYS, expected=VALUES, value=VALUES)
    def compare_and_put(self, family: str, key: bytes, expected: bytes, value: bytes) -> None:
        rows = self.model[family]
        is_expected = rows.get(key) == expected
        assert self.families[family].compare_and_put(key, expected, value) == is_expected
        if is_expected:
            rows[key] = value

    @rule(family=FAMILIES, ranges=st.lists(RANGES, min_size=1, max_size=8))
    def scan(self, family: str, ranges: list[dict[str, Any]]) -> None:
        for arguments in ranges:
            found = list(self.families[family].items(**arguments))
            rows = [row for row in self.model[family].items() if is_in(row[0], **arguments)]
            assert found == sorted(rows, reverse=arguments["reverse"])

    @rule(family=FAMILIES, keys=st.lists(KEYS, max_size=10))
    def multi_get(self, family: str, keys: list[bytes]) -> None:
        expected = [self.model[family].get(key) for key in keys]
        assert self.families[family].multi_get(keys) == expected

    @rule(family=FAMILIES, goals=st.lists(KEYS, max_size=5))
    def seek(self, family: str, goals: list[bytes]) -> None:
        rows = sorted(self.model[family])
        cursor = self.families[family].cursor()
        for goal in goals:
            behind = [key for key in rows if key >= goal]
            assert cursor.seek(goal) == bool(behind)
            assert cursor.key == (behind[0] if behind else None)
            before = [key for key in rows if key <= goal]
            assert cursor.seek_for_prev(goal) == bool(before)
            assert cursor.key == (before[-1] if before else None)

    @rule(target=snapshots)
    def take_snapshot(self) -> tuple[lithify.Snapshot, dict[str, Model]]:
        return self.db.snapshot(), {name: dict(rows) for name, rows in self.model.items()}

    @rule(taken=snapshots, family=FAMILIES)
    def read_snapshot(
        self, taken: tuple[lithify.Snapshot, dict[str, Model]], family: str
    ) -> None:
        snapshot, model = taken
        if self.is_of_now(snapshot):
            view = snapshot.column_family(family)
            assert list(view.items()) == sorted(model[family].items())

    @rule(target=iterators, family=FAMILIES)
    def begin_scan(self, family: str) -> tuple[lithify.Db, Iterator[object], list[object]]:
        rows: list[object] = [*sorted(self.model[family].items())]
        return self.db, self.families[family].items(), rows

    @rule(begun=consumes(iterators))
    def end_scan(self, begun: tuple[lithify.Db, Iterator[object], list[object]]) -> None:
        db, rows, expected = begun
        if db is self.db:
            assert list(rows) == expected

    @rule(family=FAMILIES)
    def flush(self, family: str) -> None:
        self.families[family].flush()

    @rule(family=FAMILIES)
    def compact(self, family: str) -> None:
        self.families[family].compact_range()

    @rule()
    def reopen(self) -> None:
        self.db.close()
        self.open()

    @rule(family=FAMILIES)
    def read_beside(self, family: str) -> None:
        with lithify.Db(self.db.path, read_only=True) as reader:
            found = [*reader.column_family(family).items()] if family in reader.column_families() else []
            assert found == sorted(self.model[family].items())

    @invariant()
    def the_smallest_row_is_the_same(self) -> None:
        for name, rows in self.model.items():
            first = next(self.families[name].items(), None)
            assert first == (min(rows.items()) if rows else None)

    def is_of_now(self, snapshot: lithify.Snapshot) -> bool:
        try:
            return snapshot.sequence >= 0 and bool(snapshot.get(b"")) in (True, False)
        except lithify.ClosedError:
            return False

    @staticmethod
    def apply(writes: list[tuple[str, bytes, bytes | None]], model: dict[str, Model]) -> None:
        for family, key, value in writes:
            if value is None:
                model[family].pop(key, None)
            else:
                model[family][key] = value

    @staticmethod
    def fail(fails: bool) -> None:
        if fails:
            raise ZeroDivisionError

    @staticmethod
    @contextmanager
    def unless(fails: bool) -> Iterator[None]:
        """What is inside fails as it is meant to."""
        if fails:
            with pytest.raises(ZeroDivisionError):
                yield
        else:
            yield


# Hypothesis keeps what it has tried, about 2 MB for each history of 200 steps: the long form is 20 runs.
@pytest.mark.parametrize("part", range(20 if IS_LONG else 1))
def test_a_database_beside_a_dict(part: int) -> None:
    run_state_machine_as_test(
        DatabaseBesideDict,
        settings=settings(
            max_examples=100 if IS_LONG else 60,
            stateful_step_count=200 if IS_LONG else 50,
            deadline=None,
            derandomize=not IS_LONG,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

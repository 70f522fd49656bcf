"""Advice for rows that Python has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lithify

ROCKS = ["basalt", "granite", "chalk", "slate"]
RECORDS = [
    {"id": number, "rock": ROCKS[number % 4], "mass": number * 0.5, "note": None, "wet": number % 3 == 0}
    for number in range(3000)
]
LINES = [json.dumps(record) for record in RECORDS]


def advise(data: Any, **arguments: Any) -> lithify.Report:
    return lithify.advise(data, **{"time_s": 2, **arguments})


def check(advice: lithify.Report, rows: int = 3000) -> None:
    assert advice["schema"] == "lithify-advice/1"
    assert advice["data"]["rows"] == rows
    target = advice["targets"][0]
    best = next(one for one in target["settings"] if one["name"] == target["best"])
    assert 0 < best["stored_share"] < 0.9
    assert "compression" in str(advice) and len(str(advice).splitlines()) > 5


def test_rows_of_bytes_and_text() -> None:
    check(advise([line.encode() for line in LINES]))
    check(advise(LINES))
    check(advise(iter(LINES)))


def test_pairs_and_mappings(db: lithify.Db) -> None:
    rows = {b"%06d" % number: line.encode() for number, line in enumerate(LINES)}
    check(advise(rows))
    check(advise(list(rows.items())))
    db.update(rows)
    advice = advise(db)
    check(advice)
    assert advice["data"]["key"] == "its keys"


def test_dictionaries_are_rows_of_columns() -> None:
    advice = advise(RECORDS, key="id")
    check(advice)
    assert advice["data"]["format"] == "rows of 5 columns" and advice["data"]["key"] == "id"
    by_two = advise(RECORDS, key=["rock", "id"])
    check(by_two)
    assert by_two["data"]["is_sorted_by_key"] is False
    check(advise({name: [record[name] for record in RECORDS] for name in RECORDS[0]}))


def test_files_and_databases(tmp_path: Path) -> None:
    file = tmp_path / "rocks.jsonl"
    file.write_text("\n".join(LINES))
    check(advise(file, key=["id"]))
    with lithify.Db(tmp_path / "db") as db:
        db.column_family("rocks").update((b"%06d" % n, line.encode()) for n, line in enumerate(LINES))
        db.flush()
    check(advise(tmp_path / "db", table="rocks"))


def test_arrow_pandas_and_polars() -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.Table.from_pylist(RECORDS)
    advice = advise(table, key=["id"])
    check(advice)
    assert advice["data"]["format"] == "Arrow table with 5 columns"
    same = advise(RECORDS, key=["id"])
    assert abs(same["data"]["bytes"] / advice["data"]["bytes"] - 1) < 0.01


def test_columns_of_arrow_that_are_not_read() -> None:
    arrow = pytest.importorskip("pyarrow")
    for column in ([[1, 2]], arrow.array([1], arrow.decimal128(20, 2))):
        with pytest.raises(TypeError, match="\"a\" is of type .* cast it"):
            advise(arrow.table({"a": column}))
    with pytest.raises(ValueError, match="no row"):
        advise(arrow.table({"a": arrow.array([], arrow.int64())}))
    numbers = {
        "narrow": arrow.array(range(-1000, 4000), arrow.int16()),
        "wide": arrow.array(range(5000), arrow.uint64()),
        "half": arrow.array([0.5] * 5000, arrow.float32()),
        "when": arrow.array(range(5000), arrow.timestamp("ns")),
        "nothing": arrow.nulls(5000),
        "fixed": arrow.array([b"ab"] * 5000, arrow.binary(2)),
    }
    advice = advise(arrow.table(numbers), key="wide")
    # A byte of nulls, then the columns; the key has its own 8 bytes.
    assert advice["data"]["row_bytes"] == 8 + 1 + 2 + 4 + 8 + 2


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library: str) -> None:
    frames = pytest.importorskip(library)
    pytest.importorskip("pyarrow")
    frame = frames.DataFrame(RECORDS)
    frame = frame[["id", "rock", "mass", "wet"]]
    check(advise(frame, key="id"))


def test_targets_goals_and_prices() -> None:
    advice = advise(LINES, targets=["rocksdb", "lithify"], goal="space", months=12.0)
    assert [target["name"] for target in advice["targets"]] == ["rocksdb", "lithify"]
    assert advice["goal"] == "space" and advice["assumed"]["lifetime_months"] == 12


@pytest.mark.parametrize(
    "data, arguments, error, text",
    [
        ([], {}, ValueError, "no row"),
        ({}, {}, ValueError, "no row"),
        (b"bytes", {}, TypeError, "rows"),
        ("events.jsonl", {}, TypeError, "pathlib"),
        ([1], {}, TypeError, "bytes-like"),
        ([b"a", (b"a", b"b")], {}, TypeError, "all"),
        ([(1, 2, 3)], {}, TypeError, "pairs"),
        ([b"a"], {"key": "id"}, TypeError, "key names columns"),
        ([{"a": 1}], {"key": "b"}, ValueError, "no column \"b\""),
        ([{"a": [1]}], {}, TypeError, "list"),
        ({"a": [1], "b": []}, {}, ValueError, "lengths"),
        ([b"a"], {"goal": "cheap"}, ValueError, "balanced"),
        ([b"a"], {"targets": "paper"}, ValueError, "no target"),
        ([b"a"], {"database_bytes": 0.5}, ValueError, "database_bytes is a number from 1 to "),
        ([b"a"], {"database_bytes": float("nan")}, ValueError, "database_bytes is a number"),
        ([b"a"], {"months": 0}, ValueError, "months is a number from 0.0001 to 1200, not 0"),
        ([b"a"], {"reads_per_row": -1}, ValueError, "reads_per_row is a number from 0 to "),
        ([b"a"], {"time_s": 1e12}, ValueError, "time_s is a number of seconds, at most 86400"),
        ([b"a"], {"table": "t"}, TypeError, "table"),
        ([b"a"], {}, ValueError, "Too little data to advise: 1 row,"),
        ([b"a" * 70_000] * 2, {}, ValueError, "Too little data to advise: 2 rows"),
        (Path("/nowhere/at/all.csv"), {}, ValueError, "nowhere"),
    ],
)
def test_what_is_no_data(
    data: Any, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        advise(data, **arguments)

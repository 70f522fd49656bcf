"""Speed of Lithify beside plyvel, rocksdict, LMDB and SQLite, as a Python program sees it.

    python benchmarks/compare.py [--rows N] [--rounds N] [--stores NAME,…] [--json FILE] [--directory DIR]

All stores get the same rows in the same order and are asked the same keys. They run in turn, in another order
each round. Every answer is checked. The table has medians over rounds, with the least and the most.

Durability is matched: every commit reaches the operating system before it returns, and none waits for the disk.
So a crash of the process loses nothing, a power cut may.

Stores that are not installed are left out, and named.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib
import importlib.metadata
import json
import platform
import random
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

Row = tuple[bytes, bytes]
T = TypeVar("T")

BATCH_ROWS = 1000


class Store(ABC):
    """A store in an empty directory."""

    #: What it is called, and the package that it needs.
    name: str
    package: str
    #: How it was set up, where that is not its default.
    setup = "defaults"

    @abstractmethod
    def __init__(self, directory: Path) -> None: ...

    @abstractmethod
    def put(self, key: bytes, value: bytes) -> None: ...

    @abstractmethod
    def put_together(self, rows: list[Row]) -> None: ...

    @abstractmethod
    def get(self, key: bytes) -> bytes | None: ...

    def get_together(self, keys: list[bytes]) -> list[bytes | None]:
        """By as few calls as the store allows."""
        get = self.get
        return [get(key) for key in keys]

    @abstractmethod
    def items(self) -> Iterable[Row]: ...

    @abstractmethod
    def close(self) -> None: ...


class Lithify(Store):
    name, package = "lithify", "lithify"

    def __init__(self, directory: Path) -> None:
        self.db: Any = importlib.import_module("lithify").Db(directory)

    def put(self, key: bytes, value: bytes) -> None:
        self.db.put(key, value)

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self.db.get(key)
        return value

    def get_together(self, keys: list[bytes]) -> list[bytes | None]:
        values: list[bytes | None] = self.db.multi_get(keys)
        return values

    def items(self) -> Iterable[Row]:
        rows: Iterable[Row] = self.db.items()
        return rows

    def put_together(self, rows: list[Row]) -> None:
        with self.db.batch() as batch:
            for key, value in rows:
                batch.put(key, value)

    def close(self) -> None:
        self.db.close()


class Plyvel(Store):
    name, package = "plyvel", "plyvel"
    module = "plyvel"

    def __init__(self, directory: Path) -> None:
        module: Any = importlib.import_module(self.module)
        self.db = module.DB(str(directory), create_if_missing=True)

    def put(self, key: bytes, value: bytes) -> None:
        self.db.put(key, value)

    def put_together(self, rows: list[Row]) -> None:
        with self.db.write_batch() as batch:
            for key, value in rows:
                batch.put(key, value)

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self.db.get(key)
        return value

    def items(self) -> Iterable[Row]:
        rows: Iterable[Row] = self.db.iterator()
        return rows

    def close(self) -> None:
        self.db.close()


class LithifyPlyvel(Plyvel):
    name, package = "lithify.plyvel", "lithify"
    module = "lithify.plyvel"


class Rocksdict(Store):
    name, package = "rocksdict", "rocksdict"
    setup = "raw mode"

    def __init__(self, directory: Path) -> None:
        self.module: Any = importlib.import_module("rocksdict")
        self.db = self.module.Rdict(str(directory), self.module.Options(raw_mode=True))

    def put(self, key: bytes, value: bytes) -> None:
        self.db[key] = value

    def put_together(self, rows: list[Row]) -> None:
        batch = self.module.WriteBatch(raw_mode=True)
        for key, value in rows:
            batch[key] = value
        self.db.write(batch)

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self.db.get(key)
        return value

    def get_together(self, keys: list[bytes]) -> list[bytes | None]:
        values: list[bytes | None] = self.db.get(keys)
        return values

    def items(self) -> Iterable[Row]:
        rows: Iterable[Row] = self.db.items()
        return rows

    def close(self) -> None:
        self.db.close()


class Lmdb(Store):
    name, package = "lmdb", "lmdb"
    setup = "sync=False, a map of 16 GiB"

    def __init__(self, directory: Path) -> None:
        module: Any = importlib.import_module("lmdb")
        self.env = module.open(str(directory), map_size=16 << 30, sync=False)

    def put(self, key: bytes, value: bytes) -> None:
        with self.env.begin(write=True) as transaction:
            transaction.put(key, value)

    def put_together(self, rows: list[Row]) -> None:
        with self.env.begin(write=True) as transaction:
            for key, value in rows:
                transaction.put(key, value)

    def get(self, key: bytes) -> bytes | None:
        with self.env.begin() as transaction:
            value: bytes | None = transaction.get(key)
            return value

    def get_together(self, keys: list[bytes]) -> list[bytes | None]:
        with self.env.begin() as transaction:
            get = transaction.get
            return [get(key) for key in keys]

    def items(self) -> Iterator[Row]:
        with self.env.begin() as transaction:
            yield from transaction.cursor()

    def close(self) -> None:
        self.env.close()


class Sqlite(Store):
    name, package = "sqlite3", "sqlite3"
    setup = "WAL, synchronous=NORMAL, a table WITHOUT ROWID"

    def __init__(self, directory: Path) -> None:
        self.db = sqlite3.connect(directory / "rows.sqlite", isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=NORMAL")
        self.db.execute("CREATE TABLE rows (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")

    def put(self, key: bytes, value: bytes) -> None:
        self.db.execute("INSERT OR REPLACE INTO rows VALUES (?, ?)", (key, value))

    def put_together(self, rows: list[Row]) -> None:
        self.db.execute("BEGIN")
        self.db.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", rows)
        self.db.execute("COMMIT")

    def get(self, key: bytes) -> bytes | None:
        found = self.db.execute("SELECT value FROM rows WHERE key = ?", (key,)).fetchone()
        return found[0] if found else None

    def get_together(self, keys: list[bytes]) -> list[bytes | None]:
        places = ",".join("?" * len(keys))
        found = dict(self.db.execute(f"SELECT key, value FROM rows WHERE key IN ({places})", keys))
        return [found.get(key) for key in keys]

    def items(self) -> Iterable[Row]:
        return self.db.execute("SELECT key, value FROM rows ORDER BY key")

    def close(self) -> None:
        self.db.close()


STORES: list[type[Store]] = [Lithify, LithifyPlyvel, Plyvel, Rocksdict, Lmdb, Sqlite]


class Work:
    """The rows, in the order they are put, and the keys that are asked for."""

    def __init__(self, count: int, value_bytes: int) -> None:
        source = random.Random(20)
        words = [source.randbytes(8) for _ in range(256)]

        def value() -> bytes:
            text = b"".join(source.choice(words) for _ in range(value_bytes // 16))
            return (text + source.randbytes(value_bytes))[:value_bytes]

        numbers = list(range(count))
        source.shuffle(numbers)
        self.rows = [(b"%016d" % (2 * number), value()) for number in numbers]
        self.hits = [key for key, _ in self.rows]
        source.shuffle(self.hits)
        self.misses = [b"%016d" % (2 * number + 1) for number in numbers]
        self.values = dict(self.rows)
        self.digest = digest(sorted(self.rows))


def digest(rows: Iterable[Row]) -> str:
    """What a store has to give back, in its order."""
    sum_of_rows = hashlib.sha256()
    for key, value in rows:
        sum_of_rows.update(b"%d:%d:" % (len(key), len(value)) + key + value)
    return sum_of_rows.hexdigest()


class Clock:
    """Microseconds of a row, of each operation."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.figures: dict[str, float] = {}

    def time(self, name: str, call: Callable[[], T]) -> T:
        gc.collect()
        began = time.perf_counter()
        result = call()
        self.figures[name] = (time.perf_counter() - began) / self.rows * 1e6
        return result


def put_each(store: Store, work: Work) -> None:
    put = store.put
    for key, value in work.rows:
        put(key, value)


def put_batches(store: Store, work: Work) -> None:
    for start in range(0, len(work.rows), BATCH_ROWS):
        store.put_together(work.rows[start : start + BATCH_ROWS])


def get_each(store: Store, keys: list[bytes]) -> list[bytes | None]:
    get = store.get
    return [get(key) for key in keys]


def get_batches(store: Store, keys: list[bytes]) -> list[bytes | None]:
    get = store.get_together
    starts = range(0, len(keys), BATCH_ROWS)
    return [value for start in starts for value in get(keys[start : start + BATCH_ROWS])]


def disk_bytes(directory: Path) -> int:
    return sum(entry.stat().st_blocks * 512 for entry in directory.rglob("*") if entry.is_file())


def run(kind: type[Store], work: Work, parent: str | None) -> dict[str, float]:
    """One round of one store."""
    clock = Clock(len(work.rows))
    with directory_in(parent) as directory:
        run_calls(kind, work, directory, clock)
    with directory_in(parent) as directory:
        run_batches(kind, work, directory, clock)
    return clock.figures


@contextmanager
def directory_in(parent: str | None) -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def run_calls(kind: type[Store], work: Work, directory: Path, clock: Clock) -> None:
    store = kind(directory)
    clock.time("put", lambda: put_each(store, work))
    hits = clock.time("get, hits", lambda: get_each(store, work.hits))
    check(kind, hits == [work.values[key] for key in work.hits], "other values")
    together = clock.time("get in batches", lambda: get_batches(store, work.hits))
    check(kind, together == hits, "other values in batches")
    misses = clock.time("get, misses", lambda: get_each(store, work.misses))
    check(kind, misses == [None] * len(work.misses), "values of keys that are not there")
    rows = clock.time("iterate", lambda: list(store.items()))
    check(kind, digest(rows) == work.digest, "other rows")
    store.close()
    clock.figures["bytes on disk"] = disk_bytes(directory)


def run_batches(kind: type[Store], work: Work, directory: Path, clock: Clock) -> None:
    store = kind(directory)
    clock.time("put in batches", lambda: put_batches(store, work))
    rows = clock.time("iterate after batches", lambda: list(store.items()))
    check(kind, digest(rows) == work.digest, "other rows")
    store.close()
    clock.figures["bytes on disk after batches"] = disk_bytes(directory)


def check(kind: type[Store], is_right: bool, what: str) -> None:
    if not is_right:
        raise SystemExit(f"error: {kind.name} gave {what}: its figures mean nothing")


def available(names: list[str] | None) -> list[type[Store]]:
    kinds = []
    for kind in STORES:
        if names and kind.name not in names:
            continue
        try:
            importlib.import_module(kind.package)
        except ImportError as error:
            print(f"left out: {kind.name}: {error}", file=sys.stderr)
            continue
        kinds.append(kind)
    if not kinds:
        raise SystemExit("error: none of these stores is installed")
    return kinds


def version(kind: type[Store]) -> str:
    return sqlite3.sqlite_version if kind is Sqlite else importlib.metadata.version(kind.package)


def summary(rounds: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    names = rounds[0].keys()
    return {
        name: {
            "median": statistics.median(one[name] for one in rounds),
            "least": min(one[name] for one in rounds),
            "most": max(one[name] for one in rounds),
        }
        for name in names
    }


def cell(figures: dict[str, float], is_bytes: bool) -> str:
    scale = 1e6 if is_bytes else 1
    middle, least, most = (figures[name] / scale for name in ("median", "least", "most"))
    return f"{middle:.2f} ({least:.2f}–{most:.2f})"


def print_table(results: dict[str, dict[str, dict[str, float]]]) -> None:
    operations = list(next(iter(results.values())))
    widths = [max(len(name) for name in operations) + 5, *(max(len(name), 22) for name in results)]
    print("microseconds of a row, MB on disk (lower is better): median (least–most)")
    print("".join(name.ljust(width + 2) for name, width in zip(["", *results], widths)))
    for operation in operations:
        is_bytes = operation.startswith("bytes")
        label = operation.replace("bytes", "MB", 1)
        cells = [cell(figures[operation], is_bytes) for figures in results.values()]
        print("".join(text.ljust(width + 2) for text, width in zip([label, *cells], widths)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stores", help="names, with commas between them")
    parser.add_argument("--directory", help="where the stores are made")
    parser.add_argument("--json", type=Path, help="a file for all figures of all rounds")
    arguments = parser.parse_args()
    if arguments.rounds < 3:
        parser.error("--rounds: a median needs 3")
    kinds = available(arguments.stores.split(",") if arguments.stores else None)
    work = Work(arguments.rows, arguments.value_bytes)
    rounds: dict[str, list[dict[str, float]]] = {kind.name: [] for kind in kinds}
    for number in range(arguments.rounds):
        turn = number % len(kinds)
        for kind in kinds[turn:] + kinds[:turn]:
            print(f"round {number + 1} of {arguments.rounds}: {kind.name}", file=sys.stderr)
            rounds[kind.name].append(run(kind, work, arguments.directory))
    results = {name: summary(of_store) for name, of_store in rounds.items()}
    print_table(results)
    document = {
        "python": platform.python_version(),
        "machine": platform.platform(),
        "rows": arguments.rows,
        "key_bytes": 16,
        "value_bytes": arguments.value_bytes,
        "batch_rows": BATCH_ROWS,
        "stores": {kind.name: {"version": version(kind), "setup": kind.setup} for kind in kinds},
        "unit": "microseconds of a row, or bytes",
        "rounds": rounds,
        "results": results,
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()

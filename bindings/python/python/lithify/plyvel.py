"""The names and the behaviour of the module `plyvel`, on Lithify instead of LevelDB.

    import lithify.plyvel as plyvel

What differs is in the page of this package, under "From plyvel". In short: the files are Lithify's, keys may
be any bytes-like object, options that have no counterpart are accepted and change nothing, and a comparator
has to order as bytes do.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator as _Iterator
from types import TracebackType
from typing import Any

from . import _lithify
from ._errors import CorruptionError, Error, InvalidArgumentError, IOError, NotFoundError
from ._lithify import Walk as Iterator

__all__ = [
    "DB",
    "ComparatorError",
    "CorruptionError",
    "Error",
    "IOError",
    "IteratorInvalidError",
    "__leveldb_version__",
    "__version__",
    "destroy_db",
    "repair_db",
]

#: The version of plyvel whose names these are.
__version__ = "1.5.1"
#: The version of LevelDB that plyvel's users test for.
__leveldb_version__ = "1.23"

#: The column family that keeps the name of a comparator, and its key there.
_RECORD = "lithify.plyvel"
_COMPARATOR = b"comparator"
_BYTEWISE = b"leveldb.BytewiseComparator"


class IteratorInvalidError(Error):
    """A raw iterator stands on no row."""


class ComparatorError(Error, NotImplementedError):
    """A comparator orders keys otherwise than their bytes do."""


def _path_of(name: object) -> str:
    if isinstance(name, bytes):
        return os.fsdecode(name)
    if not isinstance(name, str):
        raise TypeError("'name' arg must be a byte string or a unicode string")
    try:
        name.encode(sys.getfilesystemencoding())
    except UnicodeEncodeError as error:
        raise ValueError(f"Cannot convert unicode 'name' to a file system name: {error}") from None
    return name


def _bytes_of(name: str, value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"{name!r} must be a byte string, not {type(value).__name__}")
    return value


def _number_of(name: str, value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{name!r} must be a number, not {type(value).__name__}")
    return value


def _clamped(value: int, option: dict[str, Any]) -> int:
    return int(max(option["minimum"], min(option["maximum"], value)))


def _options(
    write_buffer_size: object,
    lru_cache_size: object,
    block_size: object,
    max_file_size: object,
    compression: object,
    bloom_filter_bits: object,
    unused: dict[str, object],
) -> dict[str, Any]:
    """Lithify's options, clamped to their ranges: LevelDB takes every number."""
    options: dict[str, Any] = {}
    database, family = _lithify.DATABASE_OPTIONS, _lithify.FAMILY_OPTIONS
    budget = 256 << 20
    if lru_cache_size is not None:
        budget += _number_of("lru_cache_size", lru_cache_size)
    if write_buffer_size is not None:
        size = _number_of("write_buffer_size", write_buffer_size)
        options["memtable_bytes"] = _clamped(size, database["memtable_bytes"])
        budget += 2 * options["memtable_bytes"]
        options["wal_bytes_max"] = max(256 << 20, options["memtable_bytes"])
    options["memory_budget_bytes"] = _clamped(budget, database["memory_budget_bytes"])
    if block_size is not None:
        size = _number_of("block_size", block_size)
        options["block_size_bytes"] = max(512, _clamped(size, family["block_size_bytes"]))
    if max_file_size is not None:
        size = _number_of("max_file_size", max_file_size)
        options["table_bytes"] = max(
            _clamped(size, family["table_bytes"]), options.get("block_size_bytes", 0)
        )
    if isinstance(compression, bytes):
        compression = compression.decode("UTF-8")
    if compression is None:
        options["compression"] = "none"
    elif not isinstance(compression, str):
        raise TypeError("'compression' must be None or a string")
    elif compression != "snappy":
        raise ValueError("'compression' must be None or 'snappy'")
    if _number_of("bloom_filter_bits", bloom_filter_bits) > 0:
        bits = _number_of("bloom_filter_bits", bloom_filter_bits)
        options["filter_bits_per_key"] = _clamped(bits, family["filter_bits_per_key"])
    for name, value in unused.items():
        if value is not None:
            _number_of(name, value)
    return options


def _check_comparator(comparator: Any, comparator_name: object) -> None:
    if comparator_name is not None:
        _bytes_of("comparator_name", comparator_name)
    if (comparator is None) != (comparator_name is None):
        raise ValueError("'comparator' and 'comparator_name' must be specified together")
    if comparator is not None and not callable(comparator):
        raise TypeError("custom comparator object must be callable")


def _check_is_ours(path: str) -> bool:
    """Whether there is a database; a LevelDB's is not touched."""
    try:
        with open(os.path.join(path, "CURRENT"), "rb") as file:
            head = file.read(16)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if head.startswith(b"MANIFEST-"):
        raise InvalidArgumentError(
            f"{path} is a database of LevelDB, which is left as it is: read its rows with plyvel, and put "
            "them into a new directory with lithify"
        )
    return True


class _BytewiseCheck:
    """Has a comparator confirm that it orders every key that is written as bytes do.

    If it agrees about a key and its two neighbours, then by transitivity it agrees about all stored keys. It
    is never called with keys that the program did not make.
    """

    def __init__(self, comparator: Callable[[bytes, bytes], int], name: bytes) -> None:
        self._compare = comparator
        self._name = name
        self.lock = threading.Lock()

    def check_pair(self, smaller: bytes, larger: bytes) -> None:
        if self._compare(smaller, larger) >= 0 or self._compare(larger, smaller) <= 0:
            raise ComparatorError(
                f"the comparator {self._name!r} does not order bytewise: it has {larger!r} not behind "
                f"{smaller!r}. Lithify orders keys by their bytes; store keys in a form whose bytes sort "
                "as you want. Nothing was written"
            )

    def check(self, db: _lithify.Db, keys: set[bytes]) -> None:
        ordered = sorted(keys)
        for smaller, larger in zip(ordered, ordered[1:]):
            self.check_pair(smaller, larger)
        with db.cursor() as cursor:
            for key in ordered:
                if cursor.seek(key):
                    if cursor.key == key:
                        continue
                    self.check_pair(key, cursor.key or b"")
                    if cursor.prev():
                        self.check_pair(cursor.key or b"", key)
                elif cursor.seek_to_last():
                    self.check_pair(cursor.key or b"", key)


class DB:
    """A database by plyvel's names."""

    def __init__(
        self,
        name: str | bytes,
        *,
        create_if_missing: bool = False,
        error_if_exists: bool = False,
        paranoid_checks: bool | None = None,
        write_buffer_size: int | None = None,
        max_open_files: int | None = None,
        lru_cache_size: int | None = None,
        block_size: int | None = None,
        block_restart_interval: int | None = None,
        max_file_size: int | None = None,
        compression: str | bytes | None = "snappy",
        bloom_filter_bits: int = 0,
        comparator: Callable[[bytes, bytes], int] | None = None,
        comparator_name: bytes | None = None,
    ) -> None:
        self._name = name
        path = _path_of(name)
        _check_comparator(comparator, comparator_name)
        unused: dict[str, object] = {
            "paranoid_checks": paranoid_checks,
            "max_open_files": max_open_files,
            "block_restart_interval": block_restart_interval,
        }
        options = _options(
            write_buffer_size,
            lru_cache_size,
            block_size,
            max_file_size,
            compression,
            bloom_filter_bits,
            unused,
        )
        exists = _check_is_ours(path)
        if exists and error_if_exists:
            raise InvalidArgumentError(f"{path}: exists (error_if_exists is true)")
        if not exists and not create_if_missing:
            raise NotFoundError(f"{path}: does not exist (create_if_missing is false)")
        self._db = _lithify.Db(path, create_if_missing=create_if_missing, **options)
        self._check: _BytewiseCheck | None = None
        try:
            self._take_comparator(comparator, comparator_name, exists)
        except BaseException:
            self._db.close()
            raise

    def _take_comparator(
        self,
        comparator: Callable[[bytes, bytes], int] | None,
        comparator_name: bytes | None,
        exists: bool,
    ) -> None:
        stored = _BYTEWISE
        if _RECORD in self._db.column_families():
            record = self._db.column_family(_RECORD, create=False)
            stored = record.get(_COMPARATOR, _BYTEWISE)
        name = comparator_name or _BYTEWISE
        if exists and name != stored:
            raise InvalidArgumentError(
                f"{name.decode('utf-8', 'replace')} does not match existing comparator "
                f"{stored.decode('utf-8', 'replace')}"
            )
        if comparator is not None and comparator_name is not None:
            if not exists:
                self._db.column_family(_RECORD).put(_COMPARATOR, comparator_name)
            self._check = _BytewiseCheck(comparator, comparator_name)

    @property
    def name(self) -> str | bytes:
        """The name that it was opened by."""
        return self._name

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._db.closed

    def close(self) -> None:
        """Closes the database; its iterators and snapshots are closed, too."""
        self._db.close()

    def __enter__(self) -> DB:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " (closed)" if self.closed else ""
        return f"<plyvel.DB with name {self.name!r}{state} at {id(self):#x}>"

    def get(
        self,
        key: bytes,
        default: Any = None,
        *,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> Any:
        """The value of a key, or `default`. Checksums are always verified."""
        return self._db.get(key, default)

    def put(self, key: bytes, value: Any, *, sync: bool = False) -> None:
        """Sets the value of a key."""
        if self._check is not None:
            with self._check.lock:
                self._check.check(self._db, {bytes(key)})
                self._db.put(key, value, durability=_durability(sync))
        elif sync:
            self._db.put(key, value, durability="sync")
        else:
            self._db.put(key, value)

    def delete(self, key: bytes, *, sync: bool = False) -> None:
        """Removes a key; no error if it is not there."""
        self._db.delete(key, durability=_durability(sync))

    def write_batch(self, *, transaction: bool = False, sync: bool = False) -> WriteBatch:
        """Writes that become visible together."""
        return WriteBatch(self, b"", transaction, sync)

    def __iter__(self) -> _Iterator[Any]:
        return self.iterator()

    def iterator(self, **arguments: Any) -> Iterator:
        """An iterator: see plyvel for its keywords."""
        return _iterator(self._db, b"", **arguments)

    def raw_iterator(
        self, *, verify_checksums: bool | None = False, fill_cache: bool | None = True
    ) -> RawIterator:
        """An iterator that stands on a row, as LevelDB's."""
        return RawIterator(self._db)

    def snapshot(self) -> Snapshot:
        """The present, to be read later."""
        return Snapshot(db=self)

    def prefixed_db(self, prefix: bytes) -> PrefixedDB:
        """The keys that begin with a prefix, as a database of their own."""
        return PrefixedDB(db=self, prefix=prefix)

    def get_property(self, name: bytes) -> bytes | None:
        """What the database says of itself, by LevelDB's names; None for others."""
        return _property(self._db, _bytes_of("name", name))

    def compact_range(self, *, start: bytes | None = None, stop: bytes | None = None) -> None:
        """Compacts a range of keys and waits for it."""
        if start is not None and stop is not None:
            stop = max(start, stop)
        self._db.compact_range(start, stop)

    def approximate_size(self, start: bytes, stop: bytes) -> int:
        """About how many bytes a range takes on disk."""
        return self.approximate_sizes((start, stop))[0]

    def approximate_sizes(self, *ranges: tuple[bytes, bytes]) -> list[int]:
        """About how many bytes each range takes on disk."""
        sizes = []
        for start, stop in ranges:
            _bytes_of("start", start)
            _bytes_of("stop", stop)
            sizes.append(self._db.approximate_size(start, stop))
        return sizes


def _durability(sync: bool) -> str | None:
    return "sync" if sync else None


def _iterator(
    rows: _lithify.Rows,
    key_prefix: bytes,
    *,
    reverse: bool = False,
    start: bytes | None = None,
    stop: bytes | None = None,
    include_start: bool = True,
    include_stop: bool = False,
    prefix: bytes | None = None,
    include_key: bool = True,
    include_value: bool = True,
    verify_checksums: bool | None = False,
    fill_cache: bool | None = True,
) -> Iterator:
    if prefix is not None:
        if start is not None or stop is not None:
            raise TypeError("'prefix' cannot be used together with 'start' or 'stop'")
        start, include_start = _bytes_of("prefix", prefix), True
        stop = _behind(key_prefix + prefix)
        include_stop = False
    elif stop is None:
        stop, include_stop = _behind(key_prefix), False
    else:
        stop = key_prefix + _bytes_of("stop", stop)
    if start is None:
        start, include_start = key_prefix, True
    else:
        start = key_prefix + start
    shape = (bool(include_key), bool(include_value), bool(reverse))
    return rows._walk(start, stop, bool(include_start), bool(include_stop), shape, key_prefix)


def _behind(prefix: bytes) -> bytes | None:
    """The first key behind all that begin with a prefix; None if there is no such key."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def _property(db: _lithify.Db, name: bytes) -> bytes | None:
    """LevelDB's properties, of what Lithify counts."""
    stats = db.stats()
    if name == b"leveldb.stats":
        return str(stats).encode()
    if name == b"leveldb.sstables":
        lines = [
            f"level {number}: {level['files']} tables, {level['size_bytes']} bytes"
            for number, level in enumerate(stats["levels"])
        ]
        return "\n".join(lines).encode()
    if name == b"leveldb.approximate-memory-usage":
        used = [use for name, use in stats["memory"].items() if name != "limit_bytes"]
        return str(sum(used)).encode()
    head = b"leveldb.num-files-at-level"
    level = name[len(head) :]
    if name.startswith(head) and level.isdigit() and int(level) < len(stats["levels"]):
        return str(stats["levels"][int(level)]["files"]).encode()
    return None


class PrefixedDB:
    """The keys of a database that begin with a prefix, without it."""

    def __init__(self, *, db: DB, prefix: bytes) -> None:
        self._db = db
        self._prefix = _bytes_of("prefix", prefix)

    @property
    def db(self) -> DB:
        """The database that it is part of."""
        return self._db

    @property
    def prefix(self) -> bytes:
        """What its keys begin with there."""
        return self._prefix

    def __repr__(self) -> str:
        return f"<plyvel.PrefixedDB with prefix {self.prefix!r} at {id(self):#x}>"

    def get(self, key: bytes, default: Any = None, **arguments: Any) -> Any:
        """The value of a key, or `default`."""
        return self._db.get(self._prefix + key, default, **arguments)

    def put(self, key: bytes, value: Any, *, sync: bool = False) -> None:
        """Sets the value of a key."""
        self._db.put(self._prefix + key, value, sync=sync)

    def delete(self, key: bytes, *, sync: bool = False) -> None:
        """Removes a key; no error if it is not there."""
        self._db.delete(self._prefix + key, sync=sync)

    def write_batch(self, *, transaction: bool = False, sync: bool = False) -> WriteBatch:
        """Writes that become visible together."""
        return WriteBatch(self._db, self._prefix, transaction, sync)

    def __iter__(self) -> _Iterator[Any]:
        return self.iterator()

    def iterator(self, **arguments: Any) -> Iterator:
        """An iterator: see plyvel for its keywords."""
        return _iterator(self._db._db, self._prefix, **arguments)

    def snapshot(self) -> Snapshot:
        """The present, to be read later."""
        return Snapshot(db=self._db, prefix=self._prefix)

    def prefixed_db(self, prefix: bytes) -> PrefixedDB:
        """Those of its keys that begin with a prefix."""
        return PrefixedDB(db=self._db, prefix=self._prefix + _bytes_of("prefix", prefix))


class WriteBatch:
    """Writes that become visible together."""

    def __init__(self, db: DB, prefix: bytes, transaction: bool, sync: bool) -> None:
        self._db = db
        self._prefix = prefix
        self._transaction = transaction
        self._batch = db._db.batch(durability=_durability(sync))
        self._keys: set[bytes] = set()

    def put(self, key: bytes, value: Any) -> None:
        """Sets the value of a key."""
        key = self._prefix + key if self._prefix else key
        self._batch.put(key, value)
        if self._db._check is not None:
            self._keys.add(bytes(key))

    def delete(self, key: bytes) -> None:
        """Removes a key; no error if it is not there."""
        self._batch.delete(self._prefix + key if self._prefix else key)

    def clear(self) -> None:
        """Forgets all writes."""
        self._batch.clear()
        self._keys.clear()

    def write(self) -> None:
        """Makes the writes visible together; the batch keeps them."""
        copy = self._db._db.batch()
        copy.append(self._batch)
        durability = _durability(self._batch.durability == "sync")
        if self._db._check is None:
            copy.commit(durability=durability)
            return
        with self._db._check.lock:
            self._db._check.check(self._db._db, self._keys)
            copy.commit(durability=durability)

    def approximate_size(self) -> int:
        """Bytes of keys and values in it."""
        return self._batch.size_bytes

    def append(self, source: WriteBatch) -> None:
        """Adds all writes of another batch."""
        self._batch.append(source._batch)
        self._keys |= source._keys

    def __enter__(self) -> WriteBatch:
        self._batch.size_bytes
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not (self._transaction and kind is not None):
            self.write()
        self.clear()


class RawIterator:
    """An iterator that stands on a row, or on none."""

    def __init__(self, rows: _lithify.Rows) -> None:
        self._cursor = rows.cursor()

    def close(self) -> None:
        """Ends the iterator."""
        self._cursor.close()

    def __enter__(self) -> RawIterator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def valid(self) -> bool:
        """Whether it stands on a row."""
        return self._cursor.valid

    def seek_to_first(self) -> None:
        """To the first row."""
        self._cursor.seek_to_first()

    def seek_to_last(self) -> None:
        """To the last row."""
        self._cursor.seek_to_last()

    def seek(self, target: bytes) -> None:
        """To the first row whose key is not before `target`."""
        self._cursor.seek(target)

    def _check_valid(self) -> None:
        if not self._cursor.valid:
            raise IteratorInvalidError

    def next(self) -> None:
        """To the next row."""
        self._check_valid()
        self._cursor.next()

    def prev(self) -> None:
        """To the previous row."""
        self._check_valid()
        self._cursor.prev()

    def key(self) -> bytes:
        """The key of the row."""
        key = self._cursor.key
        if key is None:
            raise IteratorInvalidError
        return key

    def value(self) -> bytes:
        """The value of the row."""
        value = self._cursor.value
        if value is None:
            raise IteratorInvalidError
        return value

    def item(self) -> tuple[bytes, bytes]:
        """The key and the value of the row."""
        return self.key(), self.value()


class Snapshot:
    """A database, or a part of it, at one moment."""

    def __init__(self, *, db: DB, prefix: bytes | None = None) -> None:
        self._snapshot = db._db.snapshot()
        self._prefix = prefix or b""

    def close(self) -> None:
        """Gives the moment up; a second call does nothing."""
        self._snapshot.close()

    def release(self) -> None:
        """Gives the moment up; a second call does nothing."""
        self.close()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def get(
        self,
        key: bytes,
        default: Any = None,
        *,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> Any:
        """The value that a key had, or `default`."""
        return self._snapshot.get(self._prefix + key if self._prefix else key, default)

    def __iter__(self) -> _Iterator[Any]:
        return self.iterator()

    def iterator(self, **arguments: Any) -> Iterator:
        """An iterator: see plyvel for its keywords."""
        return _iterator(self._snapshot, self._prefix, **arguments)

    def raw_iterator(
        self, *, verify_checksums: bool | None = False, fill_cache: bool | None = True
    ) -> RawIterator:
        """An iterator that stands on a row, as LevelDB's."""
        return RawIterator(self._snapshot)


def repair_db(name: str | bytes, **options: Any) -> None:
    """Saves what can be saved of a damaged database, in its place.

    What was damaged is kept beside it as `NAME.damaged` unless the repair lost nothing.
    """
    comparator, comparator_name = options.pop("comparator", None), options.pop("comparator_name", None)
    _check_comparator(comparator, comparator_name)
    path = _path_of(name).rstrip(os.sep)
    _check_is_ours(path)
    repaired, damaged = path + ".repairing", path + ".damaged"
    if os.path.lexists(damaged):
        raise InvalidArgumentError(f"{damaged} is in the way: an earlier repair left it; move it away")
    report = _lithify.repair(path, repaired)
    os.rename(path, damaged)
    os.rename(repaired, path)
    if report["lossless"]:
        shutil.rmtree(damaged)


def destroy_db(name: str | bytes) -> None:
    """Removes a database: its files, and the directory if nothing else is in it."""
    path = _path_of(name)
    _check_is_ours(path)
    _lithify.destroy(path)

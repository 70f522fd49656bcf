"""What goes wrong says so: nothing crashes, nothing hangs."""

from __future__ import annotations

import copy
import errno
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lithify

WRITER = """
import lithify, sys
db = lithify.Db(sys.argv[1])
db[b"a"] = b"from another process"
print("open", flush=True)
sys.stdin.readline()
"""


def test_everything_of_a_closed_database_says_so(path: Path) -> None:
    db = lithify.Db(path)
    db[b"a"] = b"1"
    db.flush()
    rocks = db.column_family("rocks")
    keys, cursor, walk_free = db.keys(), db.cursor(), db.items(reverse=True)
    snapshot, transaction, batch = db.snapshot(), db.transaction(), db.batch()
    transaction[b"b"] = b"2"
    batch[b"c"] = b"3"
    buffer = db.get_buffer(b"a")
    assert cursor.next() and next(keys) == b"a"
    db.close()
    assert db.closed and repr(db).endswith("(closed)>")
    for call in (
        lambda: db[b"a"],
        lambda: db.put(b"a", b""),
        lambda: db.delete(b"a"),
        lambda: db.multi_get([b"a"]),
        lambda: list(db),
        lambda: bool(db),
        lambda: db.stats(),
        lambda: db.explain(),
        lambda: db.flush(),
        lambda: db.compact_range(),
        lambda: db.snapshot(),
        lambda: db.batch(),
        lambda: db.transaction(),
        lambda: db.checkpoint(path.with_name("copy")),
        lambda: db.column_family("rocks"),
        lambda: db.ingest([]),
        lambda: rocks[b"a"],
        lambda: rocks.put(b"a", b""),
        lambda: next(keys),
        lambda: next(walk_free),
        lambda: cursor.next(),
        lambda: cursor.key,
        lambda: snapshot[b"a"],
        lambda: list(snapshot),
        lambda: transaction[b"a"],
        lambda: transaction.put(b"a", b""),
        lambda: transaction.commit(),
        lambda: batch.put(b"a", b""),
        lambda: batch.commit(),
    ):
        with pytest.raises(lithify.ClosedError) as refused:
            call()
        assert isinstance(refused.value, RuntimeError)
    db.close()
    # A value that was lent is its holder's.
    assert buffer is not None and bytes(buffer) == b"1"
    snapshot.close()
    keys.close()
    with lithify.Db(path) as db:
        assert dict(db.items()) == {b"a": b"1"}


def test_objects_may_outlive_their_database(path: Path) -> None:
    db = lithify.Db(path)
    db[b"a"] = b"1"
    keys, snapshot, transaction = db.keys(), db.snapshot(), db.transaction()
    del db
    # They keep it open.
    assert list(keys) == [b"a"] and snapshot[b"a"] == transaction[b"a"] == b"1"
    with pytest.raises(lithify.LockedError):
        lithify.Db(path)
    del keys, snapshot, transaction
    lithify.Db(path).close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_of_a_fork_gets_an_error(path: Path) -> None:
    db = lithify.Db(path)
    db[b"a"] = b"1"
    rocks = db.column_family("rocks")
    keys, cursor = db.keys(), db.cursor()
    snapshot, transaction, batch = db.snapshot(), db.transaction(), db.batch()
    store = lithify.BackupStore(path.with_name("store"))
    buffer = db.get_buffer(b"a")
    walk = db._walk(None, None, True, False, (True, True, False), b"")
    calls: list[Callable[[], object]] = [
        lambda: db[b"a"],
        lambda: db.put(b"a", b""),
        lambda: rocks[b"a"],
        lambda: db.close(),
        lambda: next(keys),
        lambda: next(walk),
        lambda: cursor.next(),
        lambda: cursor.valid,
        lambda: snapshot[b"a"],
        lambda: transaction[b"a"],
        lambda: transaction.commit(),
        lambda: batch.commit(),
        lambda: store.list(),
    ]

    def child() -> int:
        for number, call in enumerate(calls):
            try:
                call()
            except lithify.ForkedError as error:
                if "fork" not in str(error):
                    return 100 + number
            else:
                return 50 + number
        if buffer is None or bytes(buffer) != b"1":
            return 2
        # A child may read beside its parent.
        with lithify.Db(path, read_only=True) as reader:
            if reader[b"a"] != b"1":
                return 1
        return 0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        status = 99
        try:
            status = child()
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert db[b"a"] == b"1"
    transaction.rollback()
    db.close()


def test_a_child_that_ends_in_the_usual_way_leaves_the_database_alone(path: Path) -> None:
    script = """
import lithify, os, sys
db = lithify.Db(sys.argv[1])
db[b"a"] = b"1"
keys = db.keys()
pid = os.fork()
if pid == 0:
    sys.exit(0)
_, status = os.waitpid(pid, 0)
assert status == 0, status
db[b"b"] = b"2"
assert list(db) == [b"a", b"b"]
"""
    run = [sys.executable, "-W", "ignore", "-c", script, str(path)]
    subprocess.run(run, check=True, timeout=60)
    with lithify.Db(path) as db:
        assert list(db) == [b"a", b"b"]


def test_nothing_is_pickled_or_copied(db: lithify.Db) -> None:
    db[b"a"] = b"1"
    store = lithify.BackupStore(Path(db.path).with_name("store"))
    objects = [
        db,
        db.column_family("rocks"),
        db.keys(),
        db.cursor(),
        db.snapshot(),
        db.transaction(),
        db.batch(),
        store,
    ]
    for one in objects:
        for make in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="read_only=True"):
                make(one)
    with pytest.raises(TypeError):
        pickle.dumps(db.get_buffer(b"a"))


def test_a_second_writer_is_refused_and_readers_are_not(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "open\n"
        with pytest.raises(lithify.LockedError, match="read_only=True") as refused:
            lithify.Db(path)
        assert isinstance(refused.value, OSError)
        with lithify.Db(path, read_only=True) as reader:
            assert reader[b"a"] == b"from another process"
            assert reader.read_only
        writer.communicate("")
    lithify.Db(path).close()


def test_the_same_process_opens_it_once(db: lithify.Db) -> None:
    with pytest.raises(lithify.LockedError):
        lithify.Db(db.path)


def write(db: lithify.Db) -> None:
    with db.batch() as batch:
        batch[b"a"] = b""


def test_a_reader_refuses_to_write_and_moves_on(path: Path) -> None:
    with lithify.Db(path) as db:
        rocks = db.column_family("rocks")
        db[b"a"], rocks[b"a"] = b"1", b"1"
        with lithify.Db(path, read_only=True) as reader:
            seen = reader.column_family("rocks")
            for call in (
                lambda: reader.put(b"a", b""),
                lambda: reader.delete(b"a"),
                lambda: reader.delete_range(b"a", b"b"),
                lambda: reader.clear(),
                lambda: reader.flush(),
                lambda: reader.column_family("new"),
                lambda: reader.ingest([(b"a", b"")]),
                lambda: write(reader),
                lambda: seen.put(b"a", b""),
            ):
                with pytest.raises(lithify.ReadOnlyError) as refused:
                    call()
                assert isinstance(refused.value, PermissionError)
            keys, snapshot = reader.keys(), reader.snapshot()
            db[b"b"], rocks[b"b"] = b"2", b"2"
            assert b"b" not in reader and b"b" not in seen
            reader.refresh()
            assert reader[b"b"] == seen[b"b"] == b"2"
            assert list(keys) == list(snapshot) == [b"a"]
            assert reader.transaction()[b"a"] == b"1"
        with pytest.raises(lithify.InvalidArgumentError, match="up to date"):
            db.refresh()


def test_what_is_not_there(path: Path) -> None:
    with pytest.raises(lithify.NotFoundError) as refused:
        lithify.Db(path, create_if_missing=False)
    assert isinstance(refused.value, FileNotFoundError) and str(path) in str(refused.value)
    with pytest.raises(lithify.NotFoundError):
        lithify.Db(path, read_only=True)
    with pytest.raises(lithify.NotFoundError):
        lithify.verify(path)
    with pytest.raises(TypeError):
        lithify.Db(7)  # type: ignore[arg-type]


def test_a_directory_of_something_else(path: Path) -> None:
    path.write_text("a file")
    with pytest.raises(lithify.InvalidArgumentError):
        lithify.Db(path)
    directory = path.with_name("photos")
    directory.mkdir()
    (directory / "holiday.jpg").write_text("beach")
    with pytest.raises(lithify.InvalidArgumentError, match="nothing was removed"):
        lithify.destroy(directory)
    assert (directory / "holiday.jpg").exists()


def test_damage_names_the_file(path: Path) -> None:
    with lithify.Db(path) as db:
        db.update((b"%06d" % number, os.urandom(100)) for number in range(1000))
        db.flush()
    table = next(path.glob("*.sst"))
    size = table.stat().st_size
    with table.open("r+b") as file:
        file.seek(size // 2)
        file.write(bytes(64))
    with lithify.Db(path) as db, pytest.raises(lithify.CorruptionError) as found:
        list(db.items())
    assert found.value.path == str(table) and found.value.offset is not None
    assert "repair" in str(found.value)
    assert not lithify.verify(path)["sound"]
    saved = lithify.repair(path, path.with_name("saved"))
    assert not saved["lossless"] and "lost" in str(saved)
    with lithify.Db(path.with_name("saved")) as db:
        assert 0 < sum(1 for _ in db) < 1000


def test_a_full_disk_is_an_error_and_passes(path: Path) -> None:
    """A limit on the size of files stands for a disk that is full."""
    script = """
import lithify, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
db = lithify.Db(sys.argv[1])
db[b"before"] = b"1"
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
written = 0
try:
    for number in range(4000):
        db[b"%06d" % number] = bytes(1000)
        written += 1
except lithify.Error as error:
    assert isinstance(error, OSError), repr(error)
    print(type(error).__name__, error.errno, flush=True)
else:
    print("no error", flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
try:
    db.close()
except lithify.Error as error:
    print("close:", error, file=sys.stderr)
db = lithify.Db(sys.argv[1])
rows = sum(1 for _ in db)
assert rows >= written, (rows, written)
db[b"after"] = b"2"
print("reopened", db[b"before"], flush=True)
"""
    run = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    name, number = first.split()
    assert name in ("IOError", "NoSpaceError", "PoisonedError"), done.stdout
    assert int(number) == errno.EFBIG
    assert second == "reopened b'1'"


def test_the_hierarchy_of_errors() -> None:
    errors = [getattr(lithify, name) for name in dir(lithify) if name.endswith("Error")]
    assert len(errors) > 20
    for error in errors:
        assert issubclass(error, lithify.Error) and error.__doc__
    for error in (lithify.NoSpaceError, lithify.LockedError, lithify.PoisonedError):
        assert issubclass(error, lithify.IOError) and issubclass(error, OSError)
    for error in (lithify.ConflictError, lithify.DeadlockError, lithify.LockTimeoutError):
        assert issubclass(error, lithify.RetryableError)
    assert issubclass(lithify.InvalidArgumentError, ValueError)


def test_a_database_is_destroyed(path: Path) -> None:
    with lithify.Db(path) as db:
        db[b"a"] = b"1"
        with pytest.raises(lithify.LockedError):
            lithify.destroy(path)
        with lithify.Db(path, read_only=True):
            pass
    lithify.destroy(path)
    assert not path.exists()
    lithify.destroy(path)
    with lithify.Db(path) as db:
        db[b"a"] = b"1"
    (path / "notes.txt").write_text("mine")
    lithify.destroy(path)
    assert [entry.name for entry in path.iterdir()] == ["notes.txt"]


def test_an_exception_of_the_caller_goes_through(db: lithify.Db) -> None:
    def rows() -> Iterator[tuple[bytes, bytes]]:
        yield b"a", b"1"
        raise ZeroDivisionError

    for call in (db.update, db.ingest, db.batch().update):
        with pytest.raises(ZeroDivisionError):
            call(rows())
    for wrong in ([(b"a",)], [(b"a", b"b", b"c")], [7]):
        with pytest.raises(TypeError):
            db.update(wrong)  # type: ignore[arg-type]
    assert not db


def test_the_text_of_a_failure_of_the_system_is_complete(tmp_path: Path) -> None:
    with pytest.raises(lithify.NotFoundError) as caught:
        lithify.Db("/proc/nothing/here")
    assert caught.value.errno == errno.ENOENT
    assert "cannot" in str(caught.value) and "None" not in str(caught.value)


def test_a_relative_path_is_that_of_its_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    with lithify.Db("rocks") as db:
        db[b"basalt"] = b"igneous"
        monkeypatch.chdir(tmp_path / "b")
        db.flush()
        db[b"chalk"] = b"sedimentary"
        db.flush()
    assert [*(tmp_path / "b").iterdir()] == []
    with lithify.Db(tmp_path / "a" / "rocks") as db:
        assert [*db] == [b"basalt", b"chalk"]


def test_a_moment_of_a_reader_outlives_its_refresh(path: Path) -> None:
    with lithify.Db(path) as db:
        rocks = db.column_family("rocks")
        db[b"a"], rocks[b"a"] = b"1", b"1"
        with lithify.Db(path, read_only=True) as reader:
            snapshot, transaction = reader.snapshot(), reader.transaction()
            in_rocks = transaction.column_family("rocks")
            seen = reader.column_family("rocks")
            db[b"a"], rocks[b"a"] = b"2", b"2"
            db.column_family("later")[b"a"] = b"2"
            reader.refresh()
            assert reader[b"a"] == seen[b"a"] == reader.column_family("later")[b"a"] == b"2"
            for moment in (snapshot, transaction):
                assert moment[b"a"] == b"1" and list(moment) == [b"a"]
                for family in ("rocks", seen, "default", reader):
                    assert moment.column_family(family)[b"a"] == b"1"
                with pytest.raises(lithify.NotFoundError):
                    moment.column_family("later")
                with pytest.raises(lithify.ClosedError, match="later"):
                    moment.column_family(reader.column_family("later"))
            assert in_rocks[b"a"] == b"1"
        with pytest.raises(lithify.ClosedError):
            snapshot.column_family("rocks")


def test_moments_are_taken_while_a_reader_moves_on(path: Path) -> None:
    with lithify.Db(path) as db, lithify.Db(path, read_only=True) as reader:
        db[b"a"] = db.column_family("rocks")[b"a"] = b"1"
        reader.refresh()
        ends = threading.Event()
        errors: list[Exception] = []

        def take() -> None:
            try:
                while not ends.is_set():
                    for moment in (reader.snapshot(), reader.transaction()):
                        assert moment[b"a"] == moment.column_family("rocks")[b"a"] == b"1"
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(50):
            reader.refresh()
        ends.set()
        for thread in threads:
            thread.join()
        assert not errors


def test_the_exception_of_a_block_goes_through(path: Path) -> None:
    db = lithify.Db(path)
    with pytest.raises(ValueError, match="mine"):
        with db.batch() as batch, db.transaction() as transaction:
            batch[b"a"] = transaction[b"a"] = b"1"
            db.close()
            raise ValueError("mine")


def test_rows_that_cannot_be_folded_are_there_and_go(db: lithify.Db) -> None:
    """They are there, and whatever needs no value of them works."""

    def damaged(name: str) -> lithify.ColumnFamily:
        # A value from before there was an operator, which would have refused it.
        db.column_family(name).update({b"a": b"8 bytes!", b"bad": b"short", b"z": b"8 bytes!"})
        counts = db.column_family(name, merge_operator="add")
        counts.merge(b"bad", bytes(8))
        return counts

    counts = damaged("counts")
    rows = counts.items()
    assert next(rows) == (b"a", b"8 bytes!")
    with pytest.raises(lithify.MergeError):
        next(rows)
    # An iterator has ended with its error; a cursor goes on behind the row.
    assert next(rows, None) is None
    with counts.cursor() as cursor:
        with pytest.raises(lithify.MergeError):
            cursor.seek(b"bad")
        assert cursor.seek(b"bad\0") and cursor.key == b"z"
    with pytest.raises(lithify.MergeError):
        counts[b"bad"]
    counts.delete_range(b"c", None)
    del counts[b"a"]
    assert counts
    with pytest.raises(lithify.MergeError):
        counts.popitem()
    del counts[b"bad"]
    assert not counts
    counts = damaged("more counts")
    del counts[b"z"]
    counts.clear()
    assert not counts and list(counts) == []

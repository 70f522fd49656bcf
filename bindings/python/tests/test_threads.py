"""Several threads use one database, and the objects of it, at once."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import lithify

THREADS = 6


def together(work: Callable[[int], None], count: int = THREADS) -> None:
    """Runs it in several threads, and raises what one of them raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_threads_write_and_read(db: lithify.Db) -> None:
    def work(number: int) -> None:
        for step in range(400):
            key = b"%d-%04d" % (number, step)
            db[key] = key
            assert db[key] == key
            if step % 50 == 0:
                own = list(db.keys(prefix=b"%d-" % number))
                assert len(own) == step + 1 and own == sorted(own)

    together(work)
    assert sum(1 for _ in db) == THREADS * 400


def test_one_iterator_gives_every_row_once(db: lithify.Db) -> None:
    db.update((b"%06d" % number, b"") for number in range(20_000))
    keys, found, lock = db.keys(), [], threading.Lock()

    def work(_: int) -> None:
        own = list(keys)
        with lock:
            found.extend(own)

    together(work)
    assert sorted(found) == [b"%06d" % number for number in range(20_000)]


def test_one_cursor_and_one_batch_are_shared(db: lithify.Db) -> None:
    db.update((b"%06d" % number, b"%06d" % number) for number in range(1000))
    cursor, batch = db.cursor(), db.batch()

    def work(number: int) -> None:
        for step in range(300):
            cursor.seek(b"%06d" % (step * 3))
            cursor.next()
            assert cursor.key is None or len(cursor.key) == 6
            batch[b"new-%d-%d" % (number, step)] = b""

    together(work)
    batch.commit()
    assert sum(1 for _ in db.keys(prefix=b"new")) == THREADS * 300


def test_transactions_lose_no_update(db: lithify.Db) -> None:
    def work(number: int) -> None:
        for step in range(60):
            while True:
                try:
                    with db.transaction(optimistic=(number + step) % 2 == 0) as transaction:
                        old = int(transaction.get_for_update(b"sum", b"0"))
                        transaction[b"sum"] = b"%d" % (old + 1)
                    break
                except lithify.RetryableError:
                    continue

    together(work)
    assert db[b"sum"] == b"%d" % (THREADS * 60)


def test_a_close_beside_everything(path: Path) -> None:
    for _ in range(5):
        db = lithify.Db(path)
        db.update((b"%06d" % number, bytes(100)) for number in range(2000))

        def work(number: int, db: lithify.Db = db) -> None:
            try:
                while True:
                    match number:
                        case 0:
                            db[b"a"] = b"1"
                        case 1:
                            list(db.items())
                        case 2:
                            cursor = db.cursor()
                            while cursor.prev():
                                assert cursor.valid
                        case 3:
                            with db.transaction() as transaction:
                                transaction[b"b"] = b"2"
                        case 4:
                            with db.snapshot() as snapshot:
                                snapshot.multi_get([b"000001", b"zzz"])
                        case _:
                            for _ in db.keys():
                                break
                            db.close()
            except (lithify.ClosedError, AssertionError):
                assert db.closed

        together(work)
        with pytest.raises(lithify.ClosedError):
            db[b"a"]


def test_garbage_is_collected_in_the_midst(db: lithify.Db) -> None:
    db.update((b"%06d" % number, bytes(50)) for number in range(3000))

    class Ring:
        def __init__(self, rows: object) -> None:
            self.rows, self.ring = rows, self

        def __del__(self) -> None:
            if not db.closed:
                next(iter(db), None)

    def work(_: int) -> None:
        for step in range(200):
            Ring(db.items())
            Ring(db.snapshot())
            next(db.items())
            if step % 20 == 0:
                gc.collect()

    together(work)
    gc.collect()


def test_other_threads_run_while_a_call_waits(db: lithify.Db) -> None:
    """A thread that waits for a row lock holds no interpreter lock."""
    first = db.transaction()
    first[b"a"] = b"1"
    steps, has_waited = 0, threading.Event()

    def wait() -> None:
        with pytest.raises(lithify.LockTimeoutError):
            db.transaction(lock_timeout_ms=300).put(b"a", b"2")
        has_waited.set()

    thread = threading.Thread(target=wait)
    thread.start()
    while not has_waited.is_set():
        steps += 1
    thread.join()
    first.rollback()
    assert steps > 1000

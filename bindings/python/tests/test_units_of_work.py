"""Batches, transactions and snapshots."""

from __future__ import annotations

import threading

import pytest

import lithify


def test_a_batch_is_visible_at_once(db: lithify.Db) -> None:
    rocks = db.column_family("rocks")
    db[b"old"] = b"1"
    with db.batch() as batch:
        batch[b"a"] = b"1"
        batch.put(b"b", b"2")
        batch.column_family(rocks).put(b"a", b"3")
        batch.delete(b"old")
        assert len(batch) == 4 and batch.size_bytes == len(b"a1b2a3old")
        assert db.get(b"a") is None
    assert dict(db.items()) == {b"a": b"1", b"b": b"2"} and rocks[b"a"] == b"3"
    assert len(batch) == 0


def test_a_batch_that_fails_writes_nothing(db: lithify.Db) -> None:
    with pytest.raises(ZeroDivisionError):
        with db.batch() as batch:
            batch[b"a"] = b"1"
            1 / 0
    assert not db and len(batch) == 0
    batch.put(b"k" * 70_000, b"")
    batch.put(b"a", b"")
    with pytest.raises(lithify.LimitExceededError):
        batch.commit()
    assert not db and len(batch) == 2
    batch.clear()
    batch.update({b"b": b"2"})
    batch.delete_range(b"a", b"b")
    batch.commit(durability="sync")
    assert list(db) == [b"b"]


def test_a_batch_takes_in_another(db: lithify.Db) -> None:
    first, second = db.batch(), db.batch(durability="sync")
    first[b"a"] = b"1"
    second[b"a"] = b"2"
    del second[b"b"]
    first.append(second)
    first.append(first)
    assert len(first) == 6 and second.durability == "sync"
    first.commit()
    assert db[b"a"] == b"2"


def test_a_batch_belongs_to_one_database(db: lithify.Db, tmp_path: object) -> None:
    with lithify.Db(f"{tmp_path}/other") as other:
        with pytest.raises(lithify.InvalidArgumentError, match="another database"):
            db.batch().append(other.batch())


def test_a_transaction_commits_at_its_end(db: lithify.Db) -> None:
    db[b"a"] = b"1"
    with db.transaction() as transaction:
        assert transaction[b"a"] == b"1"
        transaction[b"a"] = b"2"
        transaction.put(b"b", b"3")
        assert transaction[b"a"] == b"2" and db[b"a"] == b"1"
        assert list(transaction.items()) == [(b"a", b"2"), (b"b", b"3")]
        assert b"b" in transaction and b"b" not in db
        with pytest.raises(KeyError):
            del transaction[b"c"]
    assert dict(db.items()) == {b"a": b"2", b"b": b"3"}
    with pytest.raises(lithify.ClosedError, match="transaction"):
        transaction[b"a"]


def test_an_exception_rolls_a_transaction_back(db: lithify.Db) -> None:
    with pytest.raises(ZeroDivisionError):
        with db.transaction() as transaction:
            transaction[b"a"] = b"1"
            1 / 0
    assert not db
    with db.transaction() as transaction:
        transaction[b"a"] = b"1"
        transaction.rollback()
    with db.transaction() as transaction:
        transaction[b"b"] = b"1"
        transaction.commit(durability="sync")
    assert list(db) == [b"b"]
    with pytest.raises(lithify.ClosedError):
        transaction.rollback()


def test_savepoints_and_families(db: lithify.Db) -> None:
    rocks = db.column_family("rocks")
    with db.transaction() as transaction:
        in_rocks = transaction.column_family(rocks)
        in_rocks[b"a"] = b"1"
        transaction.set_savepoint()
        in_rocks[b"a"] = b"2"
        transaction[b"b"] = b"3"
        transaction.rollback_to_savepoint()
        assert in_rocks[b"a"] == b"1" and b"b" not in transaction
        with pytest.raises(lithify.InvalidArgumentError, match="savepoint"):
            transaction.rollback_to_savepoint()
    assert rocks[b"a"] == b"1" and not db


def test_a_lock_is_waited_for_and_given_up(db: lithify.Db) -> None:
    db[b"a"] = b"1"
    with db.transaction() as first:
        assert first.get_for_update(b"a") == b"1"
        second = db.transaction(lock_timeout_ms=20)
        with pytest.raises(lithify.LockTimeoutError) as refused:
            second.put(b"a", b"2")
        assert isinstance(refused.value, (lithify.RetryableError, TimeoutError))
        second.rollback()
        done = threading.Event()

        def put() -> None:
            with db.transaction(lock_timeout_ms=10_000) as waiting:
                waiting[b"a"] = b"3"
            done.set()

        thread = threading.Thread(target=put)
        thread.start()
        assert not done.wait(0.05)
    thread.join()
    assert db[b"a"] == b"3"


def test_a_circle_of_locks_is_refused(db: lithify.Db) -> None:
    first = db.transaction(lock_timeout_ms=20_000)
    second = db.transaction(lock_timeout_ms=20_000)
    first[b"a"] = b"1"
    second[b"b"] = b"1"
    errors: list[BaseException] = []

    def cross() -> None:
        try:
            second[b"a"] = b"2"
        except lithify.DeadlockError as error:
            errors.append(error)
        second.rollback()

    thread = threading.Thread(target=cross)
    thread.start()
    try:
        first[b"b"] = b"2"
        first.commit()
    except lithify.DeadlockError as error:
        errors.append(error)
        first.rollback()
    thread.join()
    assert len(errors) == 1


def test_an_optimistic_one_finds_out_at_its_commit(db: lithify.Db) -> None:
    db[b"a"] = b"1"
    with pytest.raises(lithify.ConflictError):
        with db.transaction(optimistic=True) as transaction:
            assert transaction[b"a"] == b"1"
            db[b"a"] = b"2"
            assert transaction[b"a"] == b"1"
            transaction[b"b"] = b"3"
    assert dict(db.items()) == {b"a": b"2"}
    with db.transaction(optimistic=True) as transaction:
        next(transaction.keys())
        db[b"z"] = b"not read"
        transaction[b"b"] = b"3"
    assert db[b"b"] == b"3"


def test_a_missing_row_was_read_too(db: lithify.Db) -> None:
    with pytest.raises(lithify.ConflictError):
        with db.transaction(optimistic=True) as transaction:
            assert b"a" not in transaction
            db[b"a"] = b"2"
            transaction[b"b"] = b"3"


def test_reads_at_a_snapshot_refuse_what_changed(db: lithify.Db) -> None:
    db[b"a"] = b"1"
    with db.transaction(snapshot=True) as transaction:
        db[b"a"] = b"2"
        assert transaction[b"a"] == b"1"
        with pytest.raises(lithify.ConflictError):
            transaction.get_for_update(b"a")


def test_workers_of_a_queue(db: lithify.Db) -> None:
    db.update({b"1": b"resize", b"2": b"send"})
    with db.transaction() as first, db.transaction() as second:
        assert first.lock_first() == (b"1", b"resize")
        assert second.lock_first(prefix=b"") == (b"2", b"send")
        assert db.transaction().lock_first() is None
        second.delete(b"2")
    assert list(db) == [b"1"]


def test_a_snapshot_shows_its_moment(db: lithify.Db) -> None:
    rocks = db.column_family("rocks")
    db[b"a"] = b"1"
    rocks[b"a"] = b"2"
    with db.snapshot() as snapshot:
        db[b"a"] = b"3"
        rocks.clear()
        db.flush()
        assert snapshot[b"a"] == b"1" and snapshot.get(b"b") is None
        assert snapshot.multi_get([b"a", b"b"]) == [b"1", None]
        assert list(snapshot.items()) == [(b"a", b"1")]
        assert dict(snapshot.column_family(rocks).items()) == {b"a": b"2"}
        assert snapshot.column_family("rocks")[b"a"] == b"2"
        assert snapshot.sequence > 0
        assert not hasattr(snapshot, "put")
    with pytest.raises(lithify.ClosedError, match="snapshot"):
        snapshot[b"a"]
    snapshot.close()


def test_a_snapshot_of_nothing(db: lithify.Db) -> None:
    snapshot = db.snapshot()
    db[b"a"] = b"1"
    assert b"a" not in snapshot and list(snapshot) == []
    assert snapshot.multi_get([b"a"]) == [None]

"""Lithify: an embedded key-value store that chooses its compression by measured cost.

    >>> import lithify, tempfile
    >>> directory = tempfile.mkdtemp()
    >>> with lithify.Db(directory) as db:
    ...     db[b"basalt"] = b"igneous"
    ...     db[b"basalt"]
    b'igneous'

`Db` is a database and the mapping of its default column family. `lithify.plyvel` has the names and the
behaviour of the module `plyvel`.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from ._errors import (
    AdviceError,
    AlreadyExistsError,
    CancelledError,
    ClosedError,
    ConflictError,
    CorruptionError,
    DeadlockError,
    Error,
    ForkedError,
    InvalidArgumentError,
    IOError,
    LimitExceededError,
    LockedError,
    LockTimeoutError,
    MergeError,
    NoSpaceError,
    NotFoundError,
    PoisonedError,
    ReadOnlyError,
    RetryableError,
    TryAgainError,
    UnsupportedError,
)
from ._lithify import (
    DATABASE_OPTIONS,
    FAMILY_OPTIONS,
    BackupStore,
    Batch,
    Buffer,
    ColumnFamily,
    Cursor,
    Db,
    RowIterator,
    Rows,
    Snapshot,
    Transaction,
    __version__,
    advise,
    destroy,
    repair,
    verify,
)
from ._report import Report

__all__ = [
    "DATABASE_OPTIONS",
    "FAMILY_OPTIONS",
    "AdviceError",
    "AlreadyExistsError",
    "BackupStore",
    "Batch",
    "Buffer",
    "CancelledError",
    "ClosedError",
    "ColumnFamily",
    "ConflictError",
    "CorruptionError",
    "Cursor",
    "Db",
    "DeadlockError",
    "Error",
    "ForkedError",
    "IOError",
    "InvalidArgumentError",
    "LimitExceededError",
    "LockTimeoutError",
    "LockedError",
    "MergeError",
    "NoSpaceError",
    "NotFoundError",
    "PoisonedError",
    "ReadOnlyError",
    "Report",
    "RetryableError",
    "RowIterator",
    "Rows",
    "Snapshot",
    "Transaction",
    "TryAgainError",
    "UnsupportedError",
    "__version__",
    "advise",
    "destroy",
    "open",
    "repair",
    "verify",
]

Mapping.register(Rows)
MutableMapping.register(ColumnFamily)

#: `lithify.open(path)` reads like the built-in `open`; it is `Db(path)`.
open = Db

"""The exceptions of Lithify: one class for each thing that a caller can do about an error."""

from __future__ import annotations

__all__ = [
    "AdviceError",
    "AlreadyExistsError",
    "CancelledError",
    "ClosedError",
    "ConflictError",
    "CorruptionError",
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
    "RetryableError",
    "TryAgainError",
    "UnsupportedError",
]


class Error(Exception):
    """The base of all errors of Lithify."""

    #: The file that it happened in, if it was one.
    path: str | None = None
    #: The byte offset in that file, if it is known.
    offset: int | None = None


class InvalidArgumentError(Error, ValueError):
    """The call is wrong: change its arguments or options. Nothing was changed."""


class LimitExceededError(Error, ValueError):
    """A key, value or batch is over a documented limit. Nothing was changed."""


class AdviceError(Error, ValueError):
    """The data that advice was asked for cannot be read, or are not what they seem."""


class ClosedError(Error, RuntimeError):
    """The database, iterator, snapshot or transaction is closed, or the column family was dropped."""


class ForkedError(Error, RuntimeError):
    """The database was opened by the process that this one is a fork of: open it here."""


class CancelledError(Error):
    """The caller stopped it before its end; nothing of it is left."""


class MergeError(Error):
    """The merge operator is missing or refused the operands of a row. Nothing was changed."""


class CorruptionError(Error):
    """Stored bytes are not what was written: restore the file from a copy, or repair."""


class UnsupportedError(Error):
    """A later version wrote the file: upgrade."""


class IOError(Error, OSError):
    """The operating system refused or failed a call; `errno` says which way, where it is known."""


class NotFoundError(IOError, FileNotFoundError):
    """There is no database, column family or backup of that name."""


class AlreadyExistsError(IOError, FileExistsError):
    """Something with that name exists already."""


class NoSpaceError(IOError):
    """The disk is full. After space was freed the database writes again; it need not be reopened."""


class LockedError(IOError):
    """Somebody else has the database open for writing."""


class ReadOnlyError(IOError, PermissionError):
    """The database was opened read-only, or its directory may not be written."""


class PoisonedError(IOError):
    """A failed sync left the state on disk unknown; nothing is written any more: reopen."""


class RetryableError(Error):
    """The same work may succeed if it is tried again: a transaction from its start."""


class LockTimeoutError(RetryableError, TimeoutError):
    """A row lock was not granted in time."""


class DeadlockError(RetryableError):
    """Waiting for a row lock would have closed a circle of writers that wait for each other."""


class ConflictError(RetryableError):
    """A row changed after the transaction's snapshot."""


class TryAgainError(RetryableError):
    """What was to be read changed faster than it could be read."""


"""The error tree of Errata. Each class carries its HTTP status and its exit code.

ErrataError
├── BadInput            422 / 2   what was asked for is malformed
│   └── TooLarge        413 / 2
├── NotFound            404 / 1
├── TooMany             429 / 3
├── Unavailable         503 / 3   a part that is needed is not there
├── OutOfTime           504 / 3
└── Broken              500 / 3   our fault, or broken data of ours
"""

from __future__ import annotations

from typing import ClassVar


class ErrataError(Exception):
    """The base: `detail` is a sentence for the reader, `extra` is added to the problem document."""

    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 3
    title: ClassVar[str] = "Something broke"

    def __init__(self, detail: str, **extra: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.extra = extra


class BadInput(ErrataError):
    """What was asked for is malformed."""

    status = 422
    exit_code = 2
    title = "Malformed input"


class TooLarge(BadInput):
    """The input is over its limit."""

    status = 413
    title = "Too large"


class NotFound(ErrataError):
    """There is no such thing."""

    status = 404
    exit_code = 1
    title = "Not found"


class TooMany(ErrataError):
    """More requests than are served at once."""

    status = 429
    title = "Too many requests"


class Unavailable(ErrataError):
    """A part that is needed is not there (now)."""

    status = 503
    title = "Not available"


class OutOfTime(ErrataError):
    """The work took longer than its limit."""

    status = 504
    title = "Out of time"


class Broken(ErrataError):
    """Our fault, or broken data of ours."""

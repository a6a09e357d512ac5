"""Progress of long commands: a bar on a terminal, a line a stage elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Reporter(Protocol):
    """Shows how far a command is."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show that `done` of `total` steps of a stage are done."""

    def say(self, line: str) -> None:
        """Print a line that stays."""


@contextmanager
def reporting() -> Iterator[Reporter]:
    """Lend a reporter that suits standard error."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Bar(progress)


class _Lines:
    """One line when a stage begins: for logs."""

    def __init__(self) -> None:
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage != self._stage:
            self._stage = stage
            self.say(f"{stage} ...")

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


class _Bar:
    """A bar for the stage that runs."""

    def __init__(self, progress: object) -> None:
        from rich.progress import Progress

        assert isinstance(progress, Progress)
        self._progress = progress
        self._task = progress.add_task("starting", total=None)
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage != self._stage:
            self._stage = stage
            self._progress.reset(self._task, description=stage, total=total)
        self._progress.update(self._task, completed=done, total=total)

    def say(self, line: str) -> None:
        self._progress.console.print(line, highlight=False, markup=False)

"""A release's archive to its sites, on all cores."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from app.errors import TooLarge
from app.mine.draft import Draft, FileReport, Passed
from app.mine.globs import pattern_of
from app.mine.model import MinedRelease, Variant
from app.mine.package import Package
from app.mine.sites import finished, module_of, report_of
from app.mine.text import Text, template_of
from app.mine.wheels import Archive, Reader, opened
from app.processes import end_with_parent

Progress = Callable[[int, int], None]
TASK_BYTES = 1_000_000
SMALL_BYTES = 3_000_000  # below this, starting processes costs more than it saves
MAX_ROUNDS = 3


def mine(
    archive: Archive,
    *,
    package: str,
    version: str,
    exclude: Sequence[str] = (),
    progress: Progress | None = None,
    workers: int | None = None,
) -> MinedRelease:
    """Return all sites of one release, by path and line, the same for any number of workers.

    Shape: `exclude` are globs of paths to leave out; `progress` is called with (files done, files in all).
    """
    excluded = pattern_of(exclude)
    modules = [(path, size) for path, size in archive.modules if not excluded.match(path)]
    total = sum(size for _, size in modules)
    count = min(workers or len(os.sched_getaffinity(0)), 32) if total > SMALL_BYTES or workers else 1
    with _Miners(archive.path, count) as miners:
        reports = miners.reports(modules, progress)
        whole = Package(reports)
        written = _callers(whole, reports, miners)
    drafts = [draft for report in reports for draft in report.drafts]
    sites = finished(whole, drafts, written)
    omitted: dict[str, int] = {}
    for report in reports:
        for why, number in report.omitted.items():
            omitted[why] = omitted.get(why, 0) + number
    omitted["excluded file"] = len(archive.modules) - len(modules)
    return MinedRelease(
        package=package,
        version=version,
        sha256=archive.sha256,
        files=len(modules),
        lines=sum(report.lines for report in reports),
        failed=tuple((report.path, report.failed) for report in reports if report.failed),
        options=dict(sorted(whole.options.items())),
        sites=tuple(sites),
        omitted=dict(sorted(omitted.items())),
    )


def _start() -> None:
    end_with_parent()
    gc.disable()  # what one file leaves behind is little, and each collection walks every tree


class _Miners:
    """Reads files of one archive in this process or in several."""

    def __init__(self, archive: Path, count: int) -> None:
        self._archive = archive
        self._pool = (
            ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_start) if count > 1 else None
        )

    def __enter__(self) -> _Miners:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def reports(
        self,
        modules: Sequence[tuple[str, int]],
        progress: Progress | None = None,
        wanted: frozenset[str] = frozenset(),
    ) -> list[FileReport]:
        """Return the reports of modules, by path."""
        reports: list[FileReport] = []
        for batch in self._batches(modules, wanted):
            reports += batch
            if progress is not None:
                progress(len(reports), len(modules))
        return sorted(reports, key=lambda report: report.path)

    def _batches(self, modules: Sequence[tuple[str, int]], wanted: frozenset[str]) -> Iterator[list[FileReport]]:
        tasks = list(_tasks(modules))
        if self._pool is None:
            yield from (_read(self._archive, task, wanted) for task in tasks)
        else:
            futures = [self._pool.submit(_read, self._archive, task, wanted) for task in tasks]
            yield from (future.result() for future in as_completed(futures))


def _tasks(modules: Iterable[tuple[str, int]]) -> Iterator[tuple[str, ...]]:
    """Yield groups of paths of about equal size, the largest files first so that no core waits at the end."""
    group: list[str] = []
    size = 0
    for path, length in sorted(modules, key=lambda module: (-module[1], module[0])):
        group.append(path)
        size += length
        if size >= TASK_BYTES:
            yield tuple(group)
            group, size = [], 0
    if group:
        yield tuple(group)


def _read(archive: Path, paths: tuple[str, ...], wanted: frozenset[str]) -> list[FileReport]:
    with opened(archive) as reader:
        return [_report(reader, path, wanted) for path in paths]


def _report(reader: Reader, path: str, wanted: frozenset[str]) -> FileReport:
    try:
        source = reader.read(path)
    except TooLarge as error:
        return FileReport(path=path, module=module_of(path), failed=error.detail)
    if wanted and not re.search(rb"\b(?:" + "|".join(sorted(wanted)).encode() + rb")\(", source):
        return FileReport(path=path, module=module_of(path))
    return report_of(source, path, wanted)


# ---- what callers hand to raise-helpers -----------------------------------------------------------

Helper = tuple[str, Text]  # dotted name of a function and the text of its site, in its parameters


def _callers(package: Package, reports: Sequence[FileReport], miners: _Miners) -> dict[Draft, list[Variant]]:
    """Return the texts that callers hand to functions which raise their parameter, by site.

    A caller that hands on its own parameter is a helper in turn, for a few rounds.
    """
    written: dict[Draft, list[Variant]] = {}
    helpers: dict[str, list[tuple[Draft, Text]]] = {}
    for report in reports:
        for draft in report.drafts:
            if draft.returned:
                continue
            _, text = package.read(draft)
            if package.handed_parameters(text):
                helpers.setdefault(f"{report.module}.{draft.function}", []).append((draft, text))
    done: set[str] = set()
    for _ in range(MAX_ROUNDS):
        helpers = {name: sites for name, sites in helpers.items() if name in package.functions and name not in done}
        if not helpers:
            break
        done |= helpers.keys()
        helpers = _round(package, helpers, _calls(package, helpers, reports, miners), written)
    return written


def _calls(
    package: Package, helpers: dict[str, list[tuple[Draft, Text]]], reports: Sequence[FileReport], miners: _Miners
) -> list[Passed]:
    """Read again the files that may call one of the helpers, and return those calls."""
    names = frozenset(name.rpartition(".")[2] for name in helpers)
    homes = {package.home(name) for name in helpers}
    methods = any(package.is_method(name) for name in helpers)
    functions = {name for name in helpers if not package.is_method(name)}
    where = []
    for report in reports:
        reached = report.module in homes or any(
            target.rpartition(".")[2] in names and package.function_name(target) in functions
            for target in report.imported
        )
        if reached or methods:
            where.append((report.path, 0))
    return [passed for report in miners.reports(where, wanted=names) for passed in report.passed]


def _round(
    package: Package,
    helpers: dict[str, list[tuple[Draft, Text]]],
    calls: Sequence[Passed],
    written: dict[Draft, list[Variant]],
) -> dict[str, list[tuple[Draft, Text]]]:
    by_name: dict[str, list[str]] = {}
    for name in helpers:
        by_name.setdefault(name.rpartition(".")[2], []).append(name)
    further: dict[str, list[tuple[Draft, Text]]] = {}
    for passed in calls:
        for helper in by_name.get(passed.name, ()):
            for draft, text in helpers[helper]:
                handed = package.handed_over(helper, text, passed)
                if handed is None:
                    continue
                if package.handed_parameters(handed):
                    further.setdefault(f"{module_of(passed.path)}.{passed.function}", []).append((draft, handed))
                for parts in handed.alternatives:
                    if any(isinstance(part, str) and part.strip() for part in parts):
                        variant = Variant(template_of(parts), passed.path, passed.function)
                        written.setdefault(draft, []).append(variant)
    return further

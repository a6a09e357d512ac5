"""How long mining takes beside plain `ast.parse` over the same files, in one run on one machine.

Usage: python -m bench.mine ARCHIVE [--package sglang] [--workers N]
The goal: at most 1.5 times the parse on one core, with all cores mining. Wall clock says what a user waits; CPU time
says the same on a machine that others use too.
"""

from __future__ import annotations

import argparse
import ast
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from app.mine import packages, wheels
from app.mine.globs import pattern_of
from app.mine.mine import mine
from app.mine.model import MinedRelease


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--package", default="sglang")
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args()
    archive = wheels.archive(options.archive)
    exclude = packages.origin(options.package, archive.metadata).exclude
    parse_wall, parse_cpu = measured(lambda: parse(archive, exclude))

    release: list[MinedRelease] = []

    def run() -> None:
        release.append(
            mine(archive, package=options.package, version="bench", exclude=exclude, workers=options.workers)
        )

    mine_wall, mine_cpu = measured(run)
    cores = options.workers or len(os.sched_getaffinity(0))
    print(
        f"{archive.path.name}: {release[0].files:,} files, {release[0].lines:,} lines, {len(release[0].sites):,} sites"
    )
    print(f"{'':24}{'wall s':>10}{'CPU s':>10}")
    print(f"{'ast.parse, one core':24}{parse_wall:10.1f}{parse_cpu:10.1f}")
    print(f"{f'mine, {cores} processes':24}{mine_wall:10.1f}{mine_cpu:10.1f}")
    print(f"{'ratio':24}{mine_wall / parse_wall:10.2f}{mine_cpu / parse_cpu:10.2f}")
    print(f"ratio of CPU per core: {mine_cpu / cores / parse_cpu:.2f} (goal 1.50)")
    return 0


def measured(run: Callable[[], None]) -> tuple[float, float]:
    """Return wall clock and CPU seconds of a run, its child processes included."""
    wall, cpu = time.perf_counter(), cpu_s()
    run()
    return time.perf_counter() - wall, cpu_s() - cpu


def cpu_s() -> float:
    """Return the CPU seconds that this process and its ended children used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def parse(archive: wheels.Archive, exclude: tuple[str, ...]) -> None:
    """Read and parse the files that mining reads."""
    excluded = pattern_of(exclude)
    with archive.reader() as reader, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path, _ in archive.modules:
            if not excluded.match(path):
                ast.parse(reader.read(path))


if __name__ == "__main__":
    sys.exit(main())

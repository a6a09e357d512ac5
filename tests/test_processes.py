"""Processes that work for a parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

PARENT = """
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from app.processes import end_with_parent
if __name__ == "__main__":
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=end_with_parent)
    print(pool.submit(os.getpid).result(), flush=True)
    input()
"""


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_pool_does_not_outlive_a_killed_parent(tmp_path: object) -> None:
    script = os.path.join(str(tmp_path), "parent.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PARENT)
    with subprocess.Popen(
        [sys.executable, script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert alive(child)

        parent.send_signal(signal.SIGKILL)
        parent.wait()

    for _ in range(200):
        if not alive(child):
            return
        time.sleep(0.05)
    raise AssertionError("the pool's process outlived its parent")

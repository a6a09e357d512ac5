"""Processes that work for a parent."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have the kernel end this process when its parent dies, however it dies.

    A pool's process waits for work for ever; a parent that was killed never tells it to stop. Linux only; elsewhere
    nothing is done.
    """
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    except (AttributeError, OSError):
        return
    if os.getppid() == 1:  # it died before the kernel was asked
        os._exit(1)

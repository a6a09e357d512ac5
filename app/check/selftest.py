"""Start an engine's process once, outside the pool, and hear what it says of itself."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from app.check.pool import Engine, environment
from app.check.protocol import Fault, Hardware, ProtocolError, Ready, Start, dump, load
from app.errors import Broken

TEST_TIMEOUT_S = 600


def self_test(engine: Engine, hardware: Hardware) -> Ready:
    """Start the engine's process and return what it says of itself. Raises: Broken: it does not get ready."""
    with tempfile.TemporaryDirectory(prefix="errata-selftest-") as folder:
        try:
            process = subprocess.Popen(
                [str(engine.python), "-P", "-W", "ignore", "-m", engine.module],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                env=environment(Path(folder)), start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise Broken(f"The Python of SGLang {engine.version} does not start: {error.strerror}") from None
        start = Start(engine.version, str(engine.release), hardware, tuple(map(str, engine.overlays)))
        try:
            said, complaint = process.communicate(dump(start), timeout=TEST_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Broken(f"The self-test of SGLang {engine.version} took more than {TEST_TIMEOUT_S} s.") from None
        finally:
            process.kill()
            process.wait()
    try:
        report = load(said.partition(b"\n")[0])
    except ProtocolError:
        last = complaint.decode(errors="replace").strip().splitlines()[-1:]
        raise Broken(f"The engine of SGLang {engine.version} said nothing: {''.join(last)[:300]}") from None
    if isinstance(report, Fault):
        raise Broken(f"The driver does not fit SGLang {engine.version}: {report.detail}")
    if not isinstance(report, Ready):
        raise Broken(f"The engine of SGLang {engine.version} did not get ready.")
    return report

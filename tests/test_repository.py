"""What stands in the repository belongs there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LARGEST = 400_000  # bytes of one committed file
# Hosts that hand out packages: the installer asks pip, whose configuration belongs to the machine.
REGISTRIES = re.compile(r"(files\.python" r"hosted|py" r"pi\.org|registry\.npm" r"js)", re.I)
MACHINE_PATHS = re.compile(r"(?<![\w./-])/(work|farm)/|/root/\.pyenv")


def tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / name for name in listing.decode().split("\0") if name]


def texts() -> list[tuple[Path, str]]:
    found = []
    for path in tracked():
        if path.suffix in {".png", ".zst", ".gz"} or not path.exists():
            continue
        found.append((path, path.read_text(encoding="utf-8")))
    return found


def test_no_registry_host_and_no_path_of_one_machine() -> None:
    bad = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path, text in texts()
        for pattern in (REGISTRIES, MACHINE_PATHS)
        if path != Path(__file__) and (match := pattern.search(text))
    ]

    assert bad == []


def test_no_file_is_oversized() -> None:
    assert [str(p.relative_to(ROOT)) for p in tracked() if p.exists() and p.stat().st_size > LARGEST] == []


def test_dockerfile_is_clean() -> None:
    hadolint = ROOT / ".venv/bin/hadolint"
    if not hadolint.exists() and not shutil.which("hadolint"):
        pytest.skip("hadolint has no build for this machine")

    run = subprocess.run([hadolint, "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (run.returncode, run.stdout) == (0, "")


def test_container_and_make_share_their_scripts() -> None:
    makefile, dockerfile = (ROOT / "Makefile").read_text(), (ROOT / "Dockerfile").read_text()

    for script in ("scripts/environment", "scripts/start"):
        assert script in makefile
        assert script in dockerfile

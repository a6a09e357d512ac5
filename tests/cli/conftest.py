"""Commands run in this process on a small package in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.cli import run

SOURCE = '''
class Pool:
    def check(self, model, size):
        """Refuse what cannot be."""
        if not model.recurrent:
            raise ValueError(f"unified memory is not supported for {model.name}: it has no recurrent layer")
        assert size > 0, "size must be positive"
'''


@dataclass(frozen=True)
class Result:
    """What a command printed and its exit code."""

    code: int
    out: str
    err: str


Command = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data, cache and the source of a package."""
    (tmp_path / "data" / "errors" / "demo").mkdir(parents=True)
    (tmp_path / "data" / "packages.toml").write_text(
        '[demo]\nrepository = "acme/demo"\nhost = "https://git.example"\nsource_root = ""\ntag = "v{version}"\n'
        'license = "MIT"\nexclude = []\n'
    )
    source = tmp_path / "source" / "demo"
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("")
    (source / "pool.py").write_text(SOURCE)
    monkeypatch.setenv("ERRATA_DATABASE_URL", f"sqlite:///{tmp_path / 'errata.db'}")
    monkeypatch.setenv("ERRATA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("ERRATA_CACHE_DIR", str(tmp_path / "var"))
    monkeypatch.setenv("ERRATA_INGEST_PROCESSES", "1")
    return tmp_path


@pytest.fixture
def errata(home: Path, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run one command."""

    def command(*arguments: str) -> Result:
        capfd.readouterr()
        code = run(arguments)
        out, err = capfd.readouterr()
        return Result(code, out, err)

    return command


@pytest.fixture
def ingested(errata: Command, home: Path) -> Command:
    """Run one command where the package was ingested."""
    assert errata("ingest", "demo==1.0", "--from", str(home / "source")).code == 0
    return errata

"""An engine is installed once, goes on where it stopped, and is usable only after its self-test."""

from __future__ import annotations

import stat
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from app.check import install, options
from app.check.hardware import DEFAULT, profiles
from app.check.install import EXPECTED, Engines, Installer, recipes, unpack, usable_python
from app.check.pool import Engine
from app.check.protocol import Ready
from app.errors import BadInput, Broken, NotFound, Unavailable

RECIPE = 'package = "sglang"\nversion = "{}"\ntorch = "2.13.0"\nbase = "base.lock"\n'
GOOD = tuple(f"{wanted}: as it must" for wanted in EXPECTED)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "base.lock").write_text("attrs==1 --hash=sha256:0\n")
    (folder / "overlay.lock").write_text("attrs==2 --hash=sha256:1\n")
    (folder / "sglang-1.0.toml").write_text(RECIPE.format("1.0"))
    (folder / "sglang-1.10.toml").write_text(RECIPE.format("1.10") + 'overlays = ["overlay.lock"]\n')
    return folder


class Outside:
    """What an installation asks of the world, counted; `broken` names the step that fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps: list[str] = []
        self.broken = ""
        self.ended: tuple[str, ...] = GOOD

    def step(self, name: str) -> None:
        if name == self.broken:
            raise Unavailable(f"{name} is broken")
        self.steps.append(name)

    def fetch(self, package: str, version: str) -> Path:
        self.step("fetch")
        wheel = self.folder / f"{package}-{version}.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"{package}/__init__.py", f"__version__ = '{version}'\n")
        return wheel

    def pip(self, python: Path, *arguments: str) -> None:
        if "--report" in arguments:
            Path(arguments[arguments.index("--report") + 1]).write_text('{"install": []}')
            return
        self.step("pip " + next((a for a in reversed(arguments)), "").rpartition("/")[2])

    def self_test(self, engine: Engine, hardware: Any) -> Ready:
        self.step(f"test {engine.version}")
        return Ready(engine.version, "sm90", 1, 1.0, 1.0, 1, 1, self.ended)


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outside:
    world = Outside(tmp_path)
    monkeypatch.setattr(install, "_pip", world.pip)
    monkeypatch.setattr(install, "_compile", lambda python, folder: None)
    monkeypatch.setattr(install, "self_test", world.self_test)
    return world


@pytest.fixture
def installer(tmp_path: Path, data: Path, outside: Outside) -> Installer:
    return Installer(
        folder=tmp_path / "engines",
        fetch=outside.fetch,
        hardware=profiles().find(DEFAULT).device,
        say=lambda line: None,
        python=Path(sys.executable),
        data=data,
    )


def usable(installer: Installer) -> list[str]:
    return [engine.version for engine in Engines(installer.folder, "1.0").installed()]


def test_an_engine_is_made_of_environment_release_and_test(installer: Installer, outside: Outside) -> None:
    engine = installer.install("1.0")

    assert outside.steps == ["pip torch==2.13.0", "pip base.lock", "fetch", "test 1.0"]
    assert (engine.release / "sglang" / "__init__.py").exists()
    assert engine.python.exists()
    assert usable(installer) == ["1.0"]


def test_a_second_installation_does_nothing(installer: Installer, outside: Outside) -> None:
    first = installer.install("1.0")
    outside.steps.clear()

    assert installer.install("1.0") == first
    assert outside.steps == []


def test_an_engine_without_its_options_gets_them(installer: Installer, outside: Outside) -> None:
    engine = installer.install("1.0")
    options.file_of(engine).unlink()
    outside.steps.clear()

    installer.install("1.0")

    assert outside.steps == ["test 1.0"]
    assert options.read(engine) is not None


def test_another_release_shares_the_environment(installer: Installer, outside: Outside) -> None:
    installer.install("1.0")
    outside.steps.clear()

    engine = installer.install("1.10")

    assert outside.steps == ["fetch", "pip overlay.lock", "test 1.10"]
    assert len(engine.overlays) == 1
    assert usable(installer) == ["1.0", "1.10"]


@pytest.mark.parametrize("broken", ["pip torch==2.13.0", "pip base.lock", "fetch", "test 1.0"])
def test_an_interrupted_installation_goes_on(installer: Installer, outside: Outside, broken: str) -> None:
    outside.broken = broken
    with pytest.raises(Unavailable):
        installer.install("1.0")
    assert usable(installer) == []
    before = list(outside.steps)
    outside.broken = ""
    outside.steps.clear()

    installer.install("1.0")

    assert usable(installer) == ["1.0"]
    assert not set(before) & (set(outside.steps) - {"pip torch==2.13.0"})


def test_a_driver_that_does_not_fit_leaves_no_usable_engine(installer: Installer, outside: Outside) -> None:
    outside.ended = ("pass", "unknown: TypeError: no such parameter", *GOOD[2:])

    with pytest.raises(Broken, match=r"does not fit SGLang 1\.0"):
        installer.install("1.0")

    assert usable(installer) == []
    assert [one.tested for one in Engines(installer.folder, "1.0").all()] == [False]


def test_a_changed_recipe_is_installed_anew(installer: Installer, outside: Outside, data: Path) -> None:
    installer.install("1.0")
    outside.steps.clear()
    (data / "base.lock").write_text("attrs==3 --hash=sha256:2\n")

    installer.install("1.0")

    assert "pip base.lock" in outside.steps


def test_a_folder_that_is_gone_is_no_engine(installer: Installer) -> None:
    engine = installer.install("1.0")
    engine.release.rename(engine.release.with_name("elsewhere"))

    assert usable(installer) == []


def test_the_default_is_the_setting_s_or_the_newest(installer: Installer) -> None:
    assert Engines(installer.folder, "1.0").default() == "1.0"
    installer.install("1.10")

    assert Engines(installer.folder, "1.0").default() == "1.10"


@pytest.mark.parametrize(("version", "error"), [("9.9", NotFound), ("../x", BadInput), ("", BadInput)])
def test_an_unknown_release_is_refused(installer: Installer, version: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        installer.install(version)


@pytest.mark.parametrize(
    "text",
    [
        "package = 1",
        RECIPE.format("1.0") + 'more = "x"\n',
        RECIPE.format("1.0").replace("base.lock", "../base.lock"),
        RECIPE.format("1.0").replace("base.lock", "none.lock"),
        RECIPE.format("1.0") + "overlays = [1]\n",
    ],
)
def test_a_malformed_recipe_is_refused(data: Path, text: str) -> None:
    (data / "sglang-1.0.toml").write_text(text)

    with pytest.raises(Broken):
        recipes(data)


def test_the_recipes_of_the_repository_are_pinned_releases() -> None:
    import tomllib

    pinned = {
        entry["version"] for entry in tomllib.loads((install.DATA.parent / "releases.toml").read_text())["sglang"]
    }

    assert set(recipes()) <= pinned
    assert next(iter(recipes())) == "0.5.17"


def test_locks_are_hashed_throughout() -> None:
    for lock in install.DATA.glob("*.lock"):
        entries = lock.read_text().replace("\\\n", " ").strip().splitlines()
        assert [entry for entry in entries if "--hash=sha256:" not in entry or "==" not in entry] == []


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x"])
def test_a_wheel_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    wheel = tmp_path / "x.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(name, "")

    with pytest.raises(BadInput, match="leads elsewhere"):
        unpack(wheel, tmp_path / "out")


def test_a_wheel_with_a_link_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "x.whl"
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(link, "/etc")

    with pytest.raises(BadInput, match="leads elsewhere"):
        unpack(wheel, tmp_path / "out")


def test_a_python_is_found_to_build_on() -> None:
    assert usable_python().exists()


@pytest.mark.parametrize(
    ("needs", "cuda"),
    [
        ([], False),
        (["filelock", "sympy"], False),
        (["nvidia-cublas==13; platform_system == 'Linux'"], True),
        (["triton==3"], True),
    ],
)
def test_a_build_of_torch_is_told_by_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, needs: list[str], cuda: bool
) -> None:
    import json

    def report(python: Path, *arguments: str) -> None:
        path = Path(arguments[arguments.index("--report") + 1])
        path.write_text(json.dumps({"install": [{"metadata": {"requires_dist": needs}}]}))

    monkeypatch.setattr(install, "_pip", report)

    assert install._pulls_cuda(Path("python"), "torch==2.13.0") is cuda

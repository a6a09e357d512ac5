"""Archives are untrusted: what is read of them, and what is refused."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from app.errors import BadInput, NotFound, TooLarge, Unavailable
from app.mine import packages, wheels

METADATA = """Metadata-Version: 2.1
Name: Thing
Version: 1.2
License-Expression: MIT
Project-URL: Docs, https://example.org/docs
Project-URL: Source, https://github.com/someone/thing.git
Requires-Dist: other>=1

Text
"""


def wheel(folder: Path, members: dict[str, str | bytes], name: str = "thing-1.2-py3-none-any.whl") -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return path


def sdist(folder: Path, members: dict[str, str]) -> Path:
    path = folder / "thing-1.2.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for member, content in members.items():
            info = tarfile.TarInfo(member)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content.encode()))
        link = tarfile.TarInfo("thing-1.2/link.py")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return path


def test_lists_modules_and_metadata_of_a_wheel(tmp_path: Path) -> None:
    members: dict[str, str | bytes] = {"thing/b.py": "2", "thing/a.py": "1", "thing/data.txt": ""}
    path = wheel(tmp_path, members | {"thing-1.2.dist-info/METADATA": METADATA, "thing-1.2.data/x.py": "no"})

    archive = wheels.archive(path)

    assert archive.modules == (("thing/a.py", 1), ("thing/b.py", 1))
    assert archive.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (archive.metadata.name, archive.metadata.version, archive.metadata.license) == ("Thing", "1.2", "MIT")
    assert archive.metadata.requires == ("other>=1",)


def test_reads_a_source_distribution_without_its_first_folder_and_its_links(tmp_path: Path) -> None:
    archive = wheels.archive(sdist(tmp_path, {"thing-1.2/src/thing.py": "x", "thing-1.2/PKG-INFO": METADATA}))

    with archive.reader() as reader:
        source = reader.read("src/thing.py")

    assert [name for name, _ in archive.modules] == ["src/thing.py"]
    assert source == b"x"
    assert archive.metadata.name == "Thing"


def test_reads_a_directory_and_knows_it_by_its_contents(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "b.py").write_text("2")
    before = wheels.archive(tmp_path)
    (tmp_path / "a.py").write_text("3")

    after = wheels.archive(tmp_path)

    assert before.modules == after.modules == (("a.py", 1),)
    assert before.sha256 != after.sha256


@pytest.mark.parametrize("name", ["/etc/a.py", "../a.py", "x/../../a.py", "x\\a.py"])
def test_leaves_out_members_whose_name_leads_elsewhere(tmp_path: Path, name: str) -> None:
    assert wheels.archive(wheel(tmp_path, {name: "1", "ok.py": "2"})).modules == (("ok.py", 1),)


def test_refuses_more_source_than_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = wheel(tmp_path, {"a.py": b"#" * 5000})
    monkeypatch.setattr(wheels, "MAX_SOURCE_BYTES", 4000)

    with pytest.raises(TooLarge):
        wheels.archive(path)


def test_refuses_a_member_that_unpacks_to_more_than_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = wheels.archive(wheel(tmp_path, {"a.py": b"#" * 5000}))
    monkeypatch.setattr(wheels, "MAX_MODULE_BYTES", 4000)

    with archive.reader() as reader, pytest.raises(TooLarge):
        reader.read("a.py")


def test_refuses_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "MAX_MEMBERS", 2)

    with pytest.raises(TooLarge):
        wheels.archive(wheel(tmp_path, {"a.py": "", "b.py": "", "c.py": ""}))


@pytest.mark.parametrize("name", ["thing-1.2-py3-none-any.whl", "thing-1.2.tar.gz", "thing.exe"])
def test_refuses_what_is_no_archive(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"MZ nothing of the kind")

    with pytest.raises(BadInput):
        wheels.archive(tmp_path / name)


def test_says_which_digest_was_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = wheel(tmp_path, {"a.py": ""})
    monkeypatch.setattr(wheels, "pins", lambda: {path.name: "0" * 64})

    with pytest.raises(BadInput, match=f"{wheels.sha256(path)}.*expects {'0' * 64}"):
        wheels.fetch("thing", "1.2", tmp_path)


@pytest.mark.parametrize(("package", "version"), [("Thing", "1.2"), ("thing", "1.2.0")])
def test_takes_what_is_there_without_asking_an_index(tmp_path: Path, package: str, version: str) -> None:
    path = wheel(tmp_path, {"a.py": ""})

    assert wheels.fetch(package, version, tmp_path) == path


@pytest.mark.parametrize(("package", "version"), [("-r", "1"), ("a b", "1"), ("thing", "1 --pre"), ("../x", "1")])
def test_refuses_names_that_pip_could_take_for_something_else(tmp_path: Path, package: str, version: str) -> None:
    with pytest.raises(BadInput):
        wheels.fetch(package, version, tmp_path)


class Downloads:
    """Stands for the commands that fetch: answers each as told and remembers it."""

    def __init__(self, *answers: str | Path) -> None:
        self.answers = list(answers)
        self.commands: list[list[str]] = []

    def __call__(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        answer = self.answers.pop(0)
        if isinstance(answer, Path):
            folder = Path(command[-1] if "-P" in command else command[command.index("--dest") + 1])
            (folder / answer.name).write_bytes(answer.read_bytes())
            return subprocess.CompletedProcess(command, 0, "", "")
        return subprocess.CompletedProcess(command, 1, "", answer)


NO_WHEEL = "ERROR: No matching distribution found for thing==1.2"


def test_never_lets_pip_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there").mkdir()
    source = sdist(tmp_path / "there", {"thing-1.2/thing.py": "x"})
    downloads = Downloads(NO_WHEEL, source)
    monkeypatch.setattr(subprocess, "run", downloads)

    path = wheels.fetch("thing", "1.2", tmp_path / "cache")

    assert path == tmp_path / "cache" / source.name
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == [source.name]
    first, second = downloads.commands
    assert "--only-binary" in first and first[:3] == [sys.executable, "-m", "pip"]
    assert second[2].endswith("unbuilt.py")


@pytest.mark.parametrize(
    ("stderr", "error"),
    [(NO_WHEEL, NotFound), ("WARNING: Retrying (Retry(total=4))", Unavailable), ("ERROR: disk is full", Unavailable)],
)
def test_tells_a_missing_release_from_a_missing_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, error: type[Exception]
) -> None:
    monkeypatch.setattr(subprocess, "run", Downloads(*[stderr] * 9))

    with pytest.raises(error):
        wheels.fetch("thing", "1.2", tmp_path)


def test_pins_every_release_with_a_digest_for_both_architectures() -> None:
    versions = wheels.pinned_versions("sglang")

    assert versions == tuple(f"0.5.{n}" for n in range(17, 24))
    for version in versions:
        names = [name for name in wheels.pins() if name.startswith(f"sglang-{version}-")]
        assert {name.rpartition("_2_34_")[2] for name in names} == {"x86_64.whl", "aarch64.whl"}


# ---- origins --------------------------------------------------------------------------------------


def test_takes_a_listed_package_from_data() -> None:
    origin = packages.origin("sglang")

    assert (origin.repository, origin.source_root, origin.tag) == ("sgl-project/sglang", "python/", "v{version}")
    assert "**/test/**" in origin.exclude


def test_takes_the_repository_of_another_package_from_its_metadata(tmp_path: Path) -> None:
    archive = wheels.archive(wheel(tmp_path, {"thing-1.2.dist-info/METADATA": METADATA}))

    origin = packages.origin("thing", archive.metadata)

    assert (origin.repository, origin.host, origin.tag) == ("someone/thing", "https://github.com", None)


@pytest.mark.parametrize("url", ["https://example.org/a/b", "javascript:alert(1)", "https://github.com/sponsors/x"])
def test_offers_no_link_to_what_is_no_repository(url: str) -> None:
    assert packages.origin("thing", wheels.Metadata(project_urls=(("Source", url),))).repository is None

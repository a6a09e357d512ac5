"""The machines that can be simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.check.hardware import DEFAULT, GIB, HARDWARE, Profile, load, profiles
from app.errors import BadInput, Broken

NAMES = (
    "h100-80gb", "h200-141gb", "a100-80gb", "a100-40gb", "l40s-48gb", "l4-24gb", "rtx-4090-24gb", "rtx-5090-32gb",
    "rtx-pro-6000", "b200-180gb", "b300", "gb200", "gb300", "h20", "mi300x", "mi355x",
)  # fmt: skip


def test_all_machines_are_there() -> None:
    assert set(NAMES) <= set(profiles().names)
    assert DEFAULT in profiles().names


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("h100", "sm90"),
        ("B200", "sm90"),
        ("rtx-5090", "sm90"),
        ("a100-40gb", "sm80"),
        ("l4", "sm80"),
        ("mi300x", "hip"),
    ],
)
def test_each_belongs_to_a_group_of_processes(name: str, group: str) -> None:
    assert profiles().find(name).device.group == group


@pytest.mark.parametrize("profile", list(profiles()), ids=lambda profile: profile.name)
def test_numbers_hang_together(profile: Profile) -> None:
    device = profile.device

    assert device.total_bytes - device.used_bytes == profile.free_bytes
    assert 0.2 * GIB < device.used_bytes < 1.2 * GIB
    assert all(len(source) >= 7 for source in profile.sources.values())


def test_a_name_that_fits_several_names_them() -> None:
    with pytest.raises(BadInput, match="is any of a100-80gb, a100-40gb") as caught:
        profiles().find("A100")

    assert "h100-80gb" in caught.value.extra["known"]  # type: ignore[operator]


@pytest.mark.parametrize("name", ["", "z9000", "-", "h100-80gb-x"])
def test_an_unknown_name_lists_the_known(name: str) -> None:
    with pytest.raises(BadInput, match="is not known"):
        profiles().find(name)


def test_one_gpu_needs_no_communication() -> None:
    assert profiles().reserve(profiles().find("h100"), 1) is None


def test_the_reserve_grows_with_the_ranks_and_needs_peer_access() -> None:
    h100, l4 = profiles().find("h100"), profiles().find("l4")
    two, four, sixteen = (profiles().reserve(h100, ranks) for ranks in (2, 4, 16))
    without = profiles().reserve(l4, 4)

    assert two and four and sixteen and without
    assert without.bytes < two.bytes < four.bytes <= sixteen.bytes


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("smi_mib = 81559", "smi_mib = '81559'", "h100-80gb.smi_mib: int expected"),
        ("smi_mib = 81559", "smi_mib = 81559\nsmi_mb = 1", "no such key: smi_mb"),
        ("l2_mib = 50\n", "", "missing: l2_mib"),
        ("free_gib = 78.48", "free_gib = 99.0", "do not fit together"),
        ("capability = [9, 0]", "capability = [9]", "two numbers expected"),
        ('vendor = "nvidia"', 'vendor = "acme"', "'nvidia' or 'amd' expected"),
    ],
)
def test_a_bad_file_says_what_is_wrong(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = HARDWARE.read_text()
    assert old in text
    path = tmp_path / "hardware.toml"
    path.write_text(text.replace(old, new, 1))

    with pytest.raises(Broken, match=says):
        load(path)

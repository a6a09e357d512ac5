"""The machines a check can simulate: `data/hardware.toml`, read strictly, looked up by name."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from app.check.protocol import Hardware, Vendor
from app.errors import BadInput, Broken

HARDWARE = Path(__file__).resolve().parents[2] / "data" / "hardware.toml"
MIB, GIB = 1 << 20, 1 << 30
DEFAULT = "h100-80gb"

_REQUIRED: dict[str, type] = {
    "title": str, "vendor": str, "device_name": str, "capability": list, "total_mib": int, "smi_mib": int,
    "free_gib": float, "multiprocessors": int, "shared_memory_bytes": int, "l2_mib": int, "peer_access": bool,
    "gpus_per_node": int, "host_gib": int, "cores": int, "sources": dict,
}  # fmt: skip
_OPTIONAL: dict[str, type] = {"cuda": str, "driver": str, "hip": str, "arch": str}
_SOURCES = {"total_mib", "smi_mib", "free_gib", "shape"}


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of machine.

    Shape: `device` is what the engine's process is told; `sources` says where each group of numbers was read.
    Units: `free_bytes` is what SGLang finds free before loading on one otherwise idle GPU.
    """

    name: str
    title: str
    device: Hardware
    free_bytes: int
    gpus_per_node: int
    sources: Mapping[str, str]

    @property
    def free_is_measured(self) -> bool:
        """Say whether a start-up log gave `free_bytes`, or it was reckoned from a sister card."""
        return not self.sources["free_gib"].startswith("not measured")


@dataclass(frozen=True, slots=True)
class Reserve:
    """What communication buffers take on each of `ranks` or more GPUs. Bytes."""

    peer_access: bool
    ranks: int
    bytes: int
    source: str


class Profiles:
    """All profiles of a file, in its order."""

    def __init__(self, profiles: Mapping[str, Profile], reserves: tuple[Reserve, ...]) -> None:
        self._profiles = dict(profiles)
        self._reserves = reserves

    def __iter__(self) -> Iterator[Profile]:
        return iter(self._profiles.values())

    def __len__(self) -> int:
        return len(self._profiles)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names, in the file's order."""
        return tuple(self._profiles)

    def find(self, asked: str) -> Profile:
        """Return the profile of that name, or the only one whose name begins so ("h100").

        Raises: BadInput: no profile, or several; `known` holds the names.
        """
        name = asked.strip().lower()
        if profile := self._profiles.get(name):
            return profile
        begins = [n for n in self._profiles if n.startswith(f"{name}-")] if name else []
        if len(begins) == 1:
            return self._profiles[begins[0]]
        what = f"is any of {', '.join(begins)}" if begins else "is not known"
        raise BadInput(f"the hardware {asked[:60]!r} {what}", known=list(self._profiles))

    def reserve(self, profile: Profile, ranks: int) -> Reserve | None:
        """Return what communication takes when `ranks` GPUs work together; None for one GPU."""
        if ranks < 2:
            return None
        fitting = [r for r in self._reserves if r.peer_access == profile.device.peer_access and r.ranks <= ranks]
        return max(fitting, key=lambda r: r.ranks, default=None)


def load(path: Path = HARDWARE) -> Profiles:
    """Read the profiles. Raises: Broken: a number is missing, misspelt or impossible; says which."""
    try:
        value = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Broken(f"{path.name}: {error}") from None
    if unknown := sorted(set(value) - {"profiles", "reserve"}):
        raise Broken(f"{path.name}: no such table: {', '.join(unknown)}")
    profiles = {name: _profile(name, entry) for name, entry in value.get("profiles", {}).items()}
    return Profiles(profiles, tuple(_reserve(entry) for entry in value.get("reserve", [])))


@functools.cache
def profiles() -> Profiles:
    """Return the profiles that come with the program, read once."""
    return load()


def _profile(name: str, entry: dict[str, Any]) -> Profile:
    _check(name, entry)
    free = round(entry["free_gib"] * GIB)
    total = entry["total_mib"] * MIB
    if not 0.9 * total < free < total or entry["smi_mib"] < entry["total_mib"]:
        raise Broken(f"hardware.toml: {name}: free, total and nvidia-smi's memory do not fit together")
    device = Hardware(
        name=name,
        vendor=cast("Vendor", entry["vendor"]),
        device_name=entry["device_name"],
        capability=(entry["capability"][0], entry["capability"][1]),
        total_bytes=total,
        smi_mib=entry["smi_mib"],
        used_bytes=total - free,
        multiprocessors=entry["multiprocessors"],
        shared_memory_bytes=entry["shared_memory_bytes"],
        l2_bytes=entry["l2_mib"] * MIB,
        peer_access=entry["peer_access"],
        host_bytes=entry["host_gib"] * GIB,
        cores=entry["cores"],
        **{key: entry[key] for key in _OPTIONAL if key in entry},
    )
    return Profile(name, entry["title"], device, free, entry["gpus_per_node"], entry["sources"])


def _check(name: str, entry: dict[str, Any]) -> None:
    """Refuse an entry with a key too many or too few, or of another type."""
    kinds = _REQUIRED | _OPTIONAL
    if unknown := sorted(set(entry) - set(kinds)):
        raise Broken(f"hardware.toml: {name}: no such key: {', '.join(unknown)}")
    if missing := sorted(set(_REQUIRED) - set(entry)):
        raise Broken(f"hardware.toml: {name}: missing: {', '.join(missing)}")
    for key, value in entry.items():
        if type(value) is not kinds[key]:
            raise Broken(f"hardware.toml: {name}.{key}: {kinds[key].__name__} expected, got {value!r}")
    if entry["vendor"] not in ("nvidia", "amd"):
        raise Broken(f"hardware.toml: {name}.vendor: 'nvidia' or 'amd' expected, got {entry['vendor']!r}")
    if [type(part) for part in entry["capability"]] != [int, int]:
        raise Broken(f"hardware.toml: {name}.capability: two numbers expected, got {entry['capability']!r}")
    if missing := sorted(_SOURCES ^ set(entry["sources"])):
        raise Broken(f"hardware.toml: {name}.sources: exactly {', '.join(sorted(_SOURCES))} expected")


def _reserve(entry: dict[str, Any]) -> Reserve:
    try:
        return Reserve(entry["peer_access"], entry["ranks"], round(entry["gib"] * GIB), entry["source"])
    except (KeyError, TypeError) as error:
        raise Broken(f"hardware.toml: reserve: {error}") from None

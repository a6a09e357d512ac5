"""Announce the packages of a GPU machine, and serve them as blank modules.

One finder answers both questions that Python asks of a package: can it be imported, and which version is
it. Names and versions come from the release's own Requires-Dist, so the simulated machine is what
installing that release gives. The finder is last in line: a package that is really installed wins.
"""

from __future__ import annotations

import ctypes
import importlib.abc
import importlib.machinery
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from app.check.worker import standins

EXCEPTION_NAME = re.compile(r"(Error|Exception)(_\w+)?$")


def is_blank(value: object) -> bool:
    """Tell whether `value` is, or is made of, a stand-in of this module."""
    kind = value if isinstance(value, type) else type(value)
    return issubclass(kind, (Blank, Kernel, Agreeable, BlankModule, BlankError))


class BlankMeta(type):
    """Attributes of a blank class are blank classes, one object per dotted name."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _attribute(f"{cls.__name__}.{name}")

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __bool__(cls) -> bool:
        return True

    def __add__(cls, other: object) -> Any:
        return cls

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __add__


def _decorated(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what is being decorated, if this call is a bare decorator; else None."""
    if len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, type)):
        return args[0]
    return None


class Blank(metaclass=BlankMeta):
    """Stands for any class, function, constant or decorator of a package that is not here."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        found = _decorated(args, kwargs)
        return found if found is not None else super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = _decorated(args, kwargs)
        return found if found is not None else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return blank(name)

    def __mro_entries__(self, bases: tuple[type, ...]) -> tuple[type, ...]:
        return (Blank,)

    def __or__(self, other: object) -> Any:
        return self

    __ror__ = __or__

    def __getitem__(self, key: object) -> Any:
        return self

    def __class_getitem__(cls, key: object) -> Any:
        return cls

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __index__(self) -> int:
        """Return a size that cannot be known: only scratch buffers ask."""
        return 1

    __int__ = __index__

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.any_schema()


class BlankError(Exception):
    """The base of exceptions of packages that are not here: they must be catchable, and are never raised."""


_made: dict[str, Any] = {}


def blank(name: str) -> Any:
    """Return the stand-in for a dotted name: always the same one, so identity, equality and hashing behave."""
    if name not in _made:
        last = name.rpartition(".")[2]
        error = EXCEPTION_NAME.search(last)
        _made[name] = type(last, (BlankError,), {}) if error else BlankMeta(name, (Blank,), {})
    return _made[name]


class Kernel:
    """A kernel that keeps the Python function it decorates and launches nothing."""

    def __init__(self, fn: Any, **_: Any) -> None:
        self.fn = getattr(fn, "fn", fn)
        self.__name__ = getattr(self.fn, "__name__", "kernel")
        self.__module__ = getattr(self.fn, "__module__", "")
        self.__doc__ = getattr(self.fn, "__doc__", None)

    def __getitem__(self, grid: object) -> Any:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        return None

    run = warmup = __call__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return blank(name)


def _kernel_decorator(*args: Any, **kwargs: Any) -> Any:
    """Stand for `@jit`, `@jit(...)`, `@autotune(...)` and `@heuristics(...)`."""
    if len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, Kernel)):
        return Kernel(args[0])
    return Kernel


class Agreeable:
    """A transfer engine whose calls all succeed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: 0


class ConfidentialComputing(ctypes.Structure):
    """The settings structure of NVML that SGLang derives from."""

    _fields_ = (("ccFeature", ctypes.c_uint), ("multiGpuMode", ctypes.c_uint))


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)


def _next_power_of_2(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


_VALUES: dict[str, Any] = {
    "triton.cdiv": _cdiv,
    "triton.next_power_of_2": _next_power_of_2,
    "triton.jit": _kernel_decorator,
    "triton.autotune": _kernel_decorator,
    "triton.heuristics": _kernel_decorator,
    "triton.runtime.jit.JITFunction": Kernel,
    "triton.JITFunction": Kernel,
    "mooncake.engine.TransferEngine": Agreeable,
    "tvm_ffi.libinfo.find_libtvm_ffi": lambda: "/usr/lib/libtvm_ffi.so",
    "tvm_ffi.Object": type("Object", (), {"__slots__": (), "__ffi_init__": lambda self, *args: None}),
    "pynvml.c_nvmlSystemConfComputeSettings_v1_t": ConfidentialComputing,
}


def give(name: str, value: Any) -> None:
    """Let the attribute `name` of a blank package have a behaviour. Raises: standins.UnlistedError."""
    if name not in standins.VALUES:
        raise standins.UnlistedError(f"{name} has a behaviour without an entry in the registry")
    _VALUES[name] = value


def _attribute(name: str) -> Any:
    return _VALUES[name] if name in _VALUES else blank(name)


class BlankModule(types.ModuleType):
    """A module whose attributes are blank."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        value = sys.modules[full] if full in sys.modules else _attribute(full)
        setattr(self, name, value)
        return value


class _Announced(metadata.Distribution):
    """The metadata of a package that is announced: its name and version, no files."""

    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return path


def normal(name: str) -> str:
    """Return a distribution's normalised name."""
    return re.sub(r"[-_.]+", "-", name).lower()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Serves the announced packages. `versions` maps a normalised distribution name to its version."""

    def __init__(self, versions: Mapping[str, str]) -> None:
        self.versions = {normal(name): version for name, version in versions.items()}
        self.served: set[str] = set()
        self._owners: dict[str, str] = {}
        self._index()

    def _index(self) -> None:
        self._owners = {
            module: name
            for name in self.versions
            if name in standins.BY_DISTRIBUTION
            for module in standins.BY_DISTRIBUTION[name].modules
        }

    def change(self, packages: Mapping[str, str]) -> None:
        """Announce some optional packages in other versions, or not at all (version "").

        Raises: standins.UnlistedError: one of them is not an optional package of the list.
        """
        for name, version in packages.items():
            known = standins.BY_DISTRIBUTION.get(normal(name))
            if known is None or not known.optional:
                raise standins.UnlistedError(f"{name} is no optional package")
            if version:
                self.versions[known.distribution] = version
            else:
                self.versions.pop(known.distribution, None)
                for module in [m for m in sys.modules if m.partition(".")[0] in known.modules]:
                    del sys.modules[module]
        self._index()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in self._owners:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True, origin="simulated")

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        self.served.add(spec.name)
        module = BlankModule(spec.name)
        if "." not in spec.name:
            module.__version__ = self.versions[self._owners[spec.name]]  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass

    def find_distributions(self, context: Any = None) -> Iterable[metadata.Distribution]:
        name = getattr(context, "name", None)
        if name is None:
            return [_Announced(found, version) for found, version in self.versions.items()]
        version = self.versions.get(normal(name))
        return [_Announced(name, version)] if version else []


def declared(release: Path) -> dict[str, str]:
    """Return the dependencies of an unpacked release on a Linux GPU machine, each with a version that satisfies it."""
    from packaging.requirements import Requirement

    found: dict[str, str] = {}
    for line in metadata.PathDistribution(dist_info(release)).requires or ():
        requirement = Requirement(line)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        bounds = [bound.version for bound in requirement.specifier if bound.operator in ("==", ">=", "~=")]
        found[normal(requirement.name)] = bounds[0] if bounds else "9999.0"
    return found


def dist_info(release: Path) -> Path:
    """Return the folder with the metadata of an unpacked release."""
    return next(release.glob("sglang-*.dist-info"))


def versions(release: Path, vendor: str) -> dict[str, str]:
    """Return what is announced for an unpacked release on a machine of `vendor`."""
    found = declared(release)
    for package in standins.PACKAGES:
        if package.version == "=":
            if "flashinfer-python" in found:
                found.setdefault(package.distribution, found["flashinfer-python"])
        elif package.version and (not package.optional or package.distribution in standins.PRESENT[vendor]):
            found.setdefault(package.distribution, package.version)
    return found


def install(release: Path, vendor: str) -> Finder:
    """Put the finder last in line and return it."""
    finder = Finder(versions(release, vendor))
    sys.meta_path.append(finder)
    return finder

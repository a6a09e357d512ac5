"""Blank packages behave as far as start-up code looks."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator

import pytest

from app.check.worker import packages, standins

VERSIONS = {"flashinfer-python": "0.6.17", "triton": "3.7.1", "xgrammar": "0.2.1", "mooncake-transfer-engine": "0.3.9"}


@pytest.fixture
def finder() -> Iterator[packages.Finder]:
    before = set(sys.modules)
    found = packages.Finder(VERSIONS)
    sys.meta_path.append(found)
    yield found
    sys.meta_path.remove(found)
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_an_announced_package_imports_at_any_depth_and_has_its_version(finder: packages.Finder) -> None:
    import flashinfer.comm.anything as module  # type: ignore[import-not-found]

    assert isinstance(module, packages.BlankModule)
    assert importlib.metadata.version("flashinfer_python") == "0.6.17"
    assert sys.modules["flashinfer"].__version__ == "0.6.17"
    assert finder.served == {"flashinfer", "flashinfer.comm", "flashinfer.comm.anything"}


def test_a_package_that_is_not_announced_does_not_import(finder: packages.Finder) -> None:
    with pytest.raises(ModuleNotFoundError):
        import sgl_kernel  # type: ignore[import-not-found]  # noqa: F401


def test_a_real_package_wins(finder: packages.Finder) -> None:
    import packaging

    assert not isinstance(packaging, packages.BlankModule)


def test_one_name_is_one_object(finder: packages.Finder) -> None:
    import flashinfer

    assert flashinfer.types.uint4 is flashinfer.types.uint4
    assert flashinfer.types.uint4 in [flashinfer.types.uint4]
    assert flashinfer.types.uint4 is not flashinfer.types.uint8


def test_names_of_errors_can_be_caught(finder: packages.Finder) -> None:
    import xgrammar  # type: ignore[import-not-found]

    assert issubclass(xgrammar.InvalidGrammarError, Exception)
    assert packages.is_blank(xgrammar.InvalidGrammarError("x"))


def test_a_kernel_keeps_its_function_and_launches_nothing(finder: packages.Finder) -> None:
    import triton  # type: ignore[import-not-found]

    @triton.autotune(configs=[])  # type: ignore[untyped-decorator]
    @triton.jit  # type: ignore[untyped-decorator]
    def kernel(x: int) -> None:
        raise AssertionError("a kernel ran")

    assert kernel[(1,)](3) is None
    assert kernel.fn.__name__ == "kernel"
    assert isinstance(kernel, triton.JITFunction)


@pytest.mark.parametrize(("n", "power"), [(0, 1), (1, 1), (2, 2), (3, 4), (1000, 1024)])
def test_sizes_are_computed_for_real(finder: packages.Finder, n: int, power: int) -> None:
    import triton

    assert triton.next_power_of_2(n) == power
    assert triton.cdiv(n, 3) == -(-n // 3)


def test_a_request_may_say_that_an_optional_package_is_absent(finder: packages.Finder) -> None:
    import mooncake.engine  # type: ignore[import-not-found]

    assert mooncake.engine.TransferEngine().initialize("x") == 0
    finder.change({"mooncake-transfer-engine": ""})

    with pytest.raises(ModuleNotFoundError):
        import mooncake.engine
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("mooncake-transfer-engine")


def test_a_request_may_announce_an_optional_package(finder: packages.Finder) -> None:
    finder.change({"NIXL": "1.2"})

    import nixl  # type: ignore[import-not-found]

    assert nixl.__version__ == "1.2"


@pytest.mark.parametrize("name", ["flashinfer-python", "no-such-package"])
def test_only_optional_packages_can_be_changed(finder: packages.Finder, name: str) -> None:
    with pytest.raises(standins.UnlistedError):
        finder.change({name: ""})


def test_blanks_are_told_from_everything_else(finder: packages.Finder) -> None:
    import flashinfer

    assert packages.is_blank(flashinfer.Thing)
    assert packages.is_blank(flashinfer.Thing())
    assert packages.is_blank(flashinfer)
    assert not any(map(packages.is_blank, (1, "x", object(), type, None, ValueError("x"))))

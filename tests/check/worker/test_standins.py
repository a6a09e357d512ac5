"""Nothing is replaced that the list does not name, and everything on the list has its reason."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.check.worker import accelerator, packages, standins

ROOT = Path(__file__).parents[3]
WORKER = ROOT / "app" / "check" / "worker"
# Functions that may set an attribute whose name is not written out: on objects of their own, or as `replace` itself.
SETTERS = {("driver.py", "nothing"), ("packages.py", "__getattr__"), ("standins.py", "replace")}


def test_every_stand_in_has_a_reason_of_its_own_words() -> None:
    short = [entry.target for entry in standins.REGISTRY.values() if len(entry.reason.split()) < 4]

    assert short == []


def test_no_name_is_listed_twice() -> None:
    targets = [entry.target for entry in standins._STAND_INS]

    assert len(targets) == len(set(targets))


def test_every_package_has_a_reason_and_every_optional_one_a_version() -> None:
    assert [package.distribution for package in standins.PACKAGES if len(package.reason.split()) < 4] == []
    assert [one.distribution for one in standins.PACKAGES if one.optional and not one.version] == []
    assert {name for names in standins.PRESENT.values() for name in names} <= set(standins.BY_DISTRIBUTION)


def test_listed_values_and_given_values_are_the_same() -> None:
    given = set(packages._VALUES)
    by_machine = {"deep_gemm.get_num_sms", "triton.runtime.driver.active.get_current_target"}

    assert given | by_machine == set(standins.VALUES)


def test_what_is_not_listed_cannot_be_replaced() -> None:
    thing = types.SimpleNamespace(real=1)

    with pytest.raises(standins.UnlistedError):
        standins.replace(thing, "real", 2, "torch.cuda.no_such_name")
    with pytest.raises(standins.UnlistedError):
        standins.note("torch.cuda.no_such_name")
    with pytest.raises(standins.UnlistedError):
        packages.give("triton.no_such_name", None)

    assert thing.real == 1


def calls(tree: ast.AST, name: str, inside: str = "<module>") -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of a function, each with the name of the function it stands in."""
    for child in ast.iter_child_nodes(tree):
        within = child.name if isinstance(child, ast.FunctionDef) else inside
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id == name:
            yield within, child
        yield from calls(child, name, within)


def test_attributes_are_set_by_name_in_few_places() -> None:
    found = {
        (path.name, within)
        for path in WORKER.glob("*.py")
        for within, _ in calls(ast.parse(path.read_text()), "setattr")
    }

    assert found == SETTERS


def test_no_attribute_of_an_imported_module_is_assigned() -> None:
    assigned = []
    for path in WORKER.glob("*.py"):
        tree = ast.parse(path.read_text())
        modules = {
            (alias.asname or alias.name).partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
        for node in ast.walk(tree):
            for target in node.targets if isinstance(node, ast.Assign) else []:
                if (
                    isinstance(target, ast.Attribute)
                    and isinstance(target.value, ast.Name)
                    and target.value.id in modules
                ):
                    assigned.append(f"{path.name}:{target.lineno}")

    assert assigned == []


def test_the_targets_of_replace_are_texts_that_the_list_knows() -> None:
    """A literal target is looked up here; one put together at run time is looked up by `replace`."""
    unknown = [
        f"{path.name}:{call.lineno}"
        for path in WORKER.glob("*.py")
        for _, call in calls(ast.parse(path.read_text()), "replace")
        if len(call.args) == 4
        and isinstance(call.args[3], ast.Constant)
        and call.args[3].value not in standins.REGISTRY
    ]

    assert unknown == []


def test_the_page_shows_the_list_as_it_is() -> None:
    page = (ROOT / "docs" / "engine.md").read_text()

    assert standins.markdown() in page


def test_a_listed_name_is_replaced_and_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standins, "_installed", {})
    thing = types.SimpleNamespace(init=1)

    before = standins.replace(thing, "init", 2, "torch.cuda.init")

    assert (before, thing.init) == (1, 2)
    assert standins.installed() == {"torch.cuda.init"}


def test_a_machine_answers_the_programs_of_its_vendor_only() -> None:
    from app.check.protocol import Hardware

    nvidia = accelerator.Machine(Hardware("h", "nvidia", capability=(9, 0), smi_mib=81559, driver="580.1"), 2)
    amd = accelerator.Machine(Hardware("m", "amd", smi_mib=10), 1)

    assert accelerator.answer(nvidia, "nvidia-smi --query-gpu=memory.total --format=csv") == "81559\n81559\n"
    assert accelerator.answer(nvidia, "/usr/bin/nvidia-smi --query-gpu=compute_cap") == "9.0\n9.0\n"
    assert accelerator.answer(amd, "rocminfo | grep x") == "10240(0x0)\n"
    assert accelerator.answer(amd, "nvidia-smi --query-gpu=memory.total") is None
    assert accelerator.answer(nvidia, "sh -c id") is None
    assert accelerator.answer(nvidia, "") is None


def test_free_memory_given_by_the_asker_wins_over_the_profile() -> None:
    from app.check.protocol import Capacity, Hardware

    hardware = Hardware("h", "nvidia", total_bytes=100, used_bytes=10)
    machine = accelerator.Machine(hardware, 1)
    assert machine.free_bytes == 90

    machine.become(hardware, 1, Capacity(free_bytes=70))

    assert machine.free_bytes == 70


def test_only_what_saves_time_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standins, "_left_out", set())
    thing = types.SimpleNamespace(add_cli_args=1)
    target = "sglang.srt.server_args.ServerArgs.add_cli_args"

    with pytest.raises(standins.UnlistedError):
        standins.leave_out(["torch.cuda.init"])
    standins.leave_out([target])
    standins.replace(thing, "add_cli_args", 2, target)

    assert thing.add_cli_args == 1

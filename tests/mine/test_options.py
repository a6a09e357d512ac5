"""Options that a package declares, and the sites that depend on them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from app.mine.mine import mine
from app.mine.model import MinedRelease
from app.mine.wheels import archive

DECLARED = """
from typing import Annotated as A

class ServerArgs:
    tp_size: A[int, Arg(help="Ranks.", aliases=["--tensor-parallel-size"])] = 1
    enable_unified_memory: A[bool, "One pool.", NS("memory")] = False
    hidden: A[int, Arg(no_cli=True)] = 0
    derived: A[int, Derived("made later")] = 0
    plain: int = 0

    def check(self):
        if self.enable_unified_memory:
            raise ValueError("in the class")
"""
REGISTERED = """
def add(parser):
    parser.add_argument("--num-prompts", "-n", type=int)
    parser.add_argument("--old-name", dest="new_name")
    parser.add_argument("--data-parallel-size", "--dp-size", default=ServerArgs.dp_size)
    parser.add_argument("positional")
"""


def mined(folder: Path, **files: str) -> MinedRelease:
    for name, source in files.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(source))
    return mine(archive(folder), package="p", version="1", workers=1)


def test_reads_declared_fields_and_registered_options(tmp_path: Path) -> None:
    release = mined(tmp_path, a=DECLARED, b=REGISTERED)

    assert release.options == {
        "tp_size": ("--tp-size", "--tensor-parallel-size"),
        "enable_unified_memory": ("--enable-unified-memory",),
        "num_prompts": ("--num-prompts",),
        "new_name": ("--old-name",),
        "dp_size": ("--data-parallel-size", "--dp-size"),
    }
    assert release.sites[0].flags == ("--enable-unified-memory",)


CASES = {
    "if server_args.tp_size > 1:": ("--tp-size",),
    "if self.server_args.tp_size > 1:": ("--tp-size",),
    "if get_server_args().tp_size > 1:": ("--tp-size",),
    "if get_parallel().tp_size > 1:": ("--tp-size",),
    "if get_exec().kernel.tp_size > 1:": ("--tp-size",),
    "if getattr(args, 'num_prompts', 0):": ("--num-prompts",),
    "if args.dp_size:": ("--dp-size",),
    "if get_parallel().num_prompts:": (),
    "if config.tp_size > 1:": (),
    "if tp_size > 1:": (),
    "if self.tp_size > 1:": (),
}


@pytest.mark.parametrize(("condition", "flags"), CASES.items(), ids=CASES.keys())
def test_names_the_option_that_a_guard_reads(tmp_path: Path, condition: str, flags: tuple[str, ...]) -> None:
    release = mined(tmp_path, a=DECLARED, b=REGISTERED, c=f"{condition}\n    raise ValueError('x')\n")

    assert release.sites[-1].flags == flags


def test_follows_names_that_were_read_from_arguments(tmp_path: Path) -> None:
    source = """
    def f(server_args):
        size = server_args.tp_size
        memory = get_memory()
        cfg = resolving_view(server_args)
        if size > 1:
            raise ValueError("a")
        if memory.enable_unified_memory:
            raise ValueError("b")
        if cfg.tp_size:
            raise ValueError("c")

    class Pool:
        def __init__(self):
            self.unified = get_memory().enable_unified_memory

        def f(self):
            assert not self.unified
    """

    release = mined(tmp_path, a=DECLARED, c=source)

    assert [site.flags for site in release.sites if site.path == "c.py"] == [
        ("--tp-size",),
        ("--enable-unified-memory",),
        ("--tp-size",),
        ("--enable-unified-memory",),
    ]


def test_names_options_that_a_message_quotes_by_their_main_form(tmp_path: Path) -> None:
    message = "raise ValueError('drop --tensor-parallel-size or --no-such-option')\n"

    release = mined(tmp_path, a=DECLARED, c=message)

    assert release.sites[-1].flags == ("--tp-size",)

"""The command line: each module of this package adds its commands with `register`.

Heavy imports wait inside the commands, so that `errata --help` answers at once.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Sequence

import typer

from app.errors import ErrataError


def application() -> typer.Typer:
    """Return the application with the commands of every module of this package that has a `register`."""
    app = typer.Typer(
        name="errata",
        help="An error knowledge base for Python software, SGLang first.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        result_callback=_exit,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        register = getattr(importlib.import_module(f"{__name__}.{module.name}"), "register", None)
        if register is not None:
            register(app)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 fine, 1 finding, 2 bad usage, 3 could not decide or broken."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; an error of ours is one line on standard error."""
    try:
        application()(arguments)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    except ErrataError as error:
        print(f"errata: {error.detail}", file=sys.stderr)
        return error.exit_code
    return 0


def _exit(code: object) -> None:
    """Exit with what the command returned."""
    raise typer.Exit(code if isinstance(code, int) else 0)

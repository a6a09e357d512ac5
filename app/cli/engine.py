"""`errata engine list` and `errata engine install`: the engines that checks run on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import options
from app.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from app.check.install import Installer
    from app.cli.progress import Reporter
    from app.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="The releases of SGLang that checks run on.")
    group.command("list")(list_engines)
    group.command("install")(install)
    app.add_typer(group, name="engine")


def folder(chosen: Settings) -> Path:
    """Return where engines are kept."""
    return chosen.cache_dir / "engines"


def list_engines(format_: FormatOption = Format.TEXT) -> int:
    """List the engines that are installed, and those that can be."""
    from app.check.install import Engines, recipes

    chosen = options.settings()
    engines = Engines(folder(chosen), chosen.check_engine)
    present = {one.engine.version: one.tested for one in engines.all()}
    default = engines.default()
    rows = [
        {"version": version, "state": _state(present.get(version)), "default": version == default}
        for version in recipes()
    ]
    if format_ is Format.JSON:
        options.print_json({"engines": rows})
    else:
        for row in rows:
            print(f"{row['version']:10} {row['state']}{' (default)' if row['default'] else ''}")
    return 0 if engines.installed() else 3


def _state(tested: bool | None) -> str:
    if tested is None:
        return "not installed"
    return "ready" if tested else "does not fit: its self-test failed"


def install(
    versions: Annotated[
        list[str] | None, typer.Argument(help="Releases, such as 0.5.18; `all` for every one; none: those served.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Run the self-test even if the engine is ready.")] = False,
) -> int:
    """Install engines: the shared environment, the release's wheel, a self-test. A second run does nothing."""
    from app.check.install import recipes
    from app.cli.progress import reporting

    known = recipes()
    served = [version for version, recipe in known.items() if recipe.served]
    wanted = list(known) if versions == ["all"] else versions or served
    with reporting() as report:
        made = installer(options.settings(), report)
        for version in wanted:
            made.install(version, again=again)
    return 0


def installer(chosen: Settings, report: Reporter) -> Installer:
    """Return the installer that the settings describe."""
    from app.check.hardware import DEFAULT, profiles
    from app.check.install import Installer
    from app.mine import wheels

    wheels_folder = chosen.cache_dir / "wheels"
    return Installer(
        folder=folder(chosen),
        fetch=lambda package, version: wheels.fetch(package, version, wheels_folder),
        hardware=profiles().find(DEFAULT).device,
        say=report.say,
        torch_index=chosen.torch_index,
    )

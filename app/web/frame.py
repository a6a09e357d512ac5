"""What every page shares: the head, the navigation and the Jinja environment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.web.assets import Assets

TEMPLATES = Path(__file__).parent.parent.parent / "templates"
# A search engine and a chat preview cut there.
DESCRIPTION_LENGTH = 180
TITLE_LENGTH = 110


@dataclass(frozen=True, slots=True)
class Site:
    """What a page may say about the site itself. `url` is its public address without a final slash, or ""."""

    url: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A text that leads somewhere; `url` is "" where it only names."""

    text: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the navigation."""

    name: str
    url: str


NAVIGATION = (
    Entry("Errors", "/errors"),
    Entry("Identify", "/identify"),
    Entry("Check", "/check"),
    Entry("Releases", "/releases"),
    Entry("API", "/api"),
    Entry("About", "/about"),
)


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a page.

    Shape: `section` is the navigation entry the page belongs to; `canonical`, `json` and `markdown` are addresses
    on this site, "" where there is none; `indexed` is whether search engines may list the page.
    """

    title: str
    description: str
    section: str = ""
    canonical: str = ""
    json: str = ""
    markdown: str = ""
    kind: Literal["website", "article"] = "website"
    indexed: bool = True
    search: bool = True


def head_title(text: str) -> str:
    """Return a page title: one line, cut to what a tab or a preview shows, with the site's name."""
    return f"{shortened(text, TITLE_LENGTH)} - Errata"


def shortened(text: str, length: int) -> str:
    """Return the text on one line, cut at a word before `length` characters."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    at_word = cut.rpartition(" ")[0]
    return (at_word if len(at_word) > length // 2 else cut) + "…"


def environment(site: Site, assets: Assets, *, templates: Path = TEMPLATES) -> Environment:
    """Return the Jinja environment: everything is escaped, and a name that is not given is an error."""
    env = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    env.globals.update(site=site, asset=assets.url, navigation=NAVIGATION)
    return env

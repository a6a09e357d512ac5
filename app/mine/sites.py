"""One module's source to its sites."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Mapping, Sequence

from app.mine.draft import Draft, FileReport
from app.mine.model import Site, Variant
from app.mine.package import Package
from app.mine.visitor import Visitor

Written = Mapping[Draft, Sequence[Variant]]
# Words of which every site, and every function whose text a site may show, holds one.
_WORDS = (
    *("raise", "assert", "rror", "abort", "msg", "message", "Message", "reason", "Response", "Exception", "exit"),
    *("add_argument", "__init__", "__str__", "return f", 'return "', "return '", "return (", "detail", "fail"),
    *("valid", "check", "return False,", "return None,", "global "),
)
_NEWLINES = re.compile(r"\r\n?")


def sites_of(source: str | bytes, path: str) -> list[Site]:
    """Return the sites of one module by line, with nothing of other modules known.

    Raises: SyntaxError: the source does not parse.
    """
    report = report_of(source if isinstance(source, bytes) else source.encode(), path)
    if report.failed:
        raise SyntaxError(f"{path}: {report.failed}")
    return finished(Package([report]), report.drafts)


def finished(package: Package, drafts: Sequence[Draft], written: Written | None = None) -> list[Site]:
    """Return the finished sites of drafts, by path and line; `written` holds what callers hand to a site.

    A returned text is a site of its own unless a raise shows it, and then handing it on is none.
    """
    written = written or {}
    package.used.clear()
    sites = [package.site(draft, written.get(draft, ())) for draft in drafts if draft.kind != "message"]
    raised = set(package.used)
    returned = [draft for draft in drafts if draft.returned and home(draft) not in raised]
    homes = set(map(home, returned))
    handed = [
        draft
        for draft in drafts
        if draft.kind == "message" and not draft.returned and not package.hands_on(draft, homes)
    ]
    sites += [package.site(draft, written.get(draft, ())) for draft in (*returned, *handed)]
    return sorted(filter(None, sites), key=lambda site: (site.path, site.line, site.end_line, site.kind))


def home(draft: Draft) -> str:
    """Return the dotted name of the function that a draft is in."""
    return f"{module_of(draft.path)}.{draft.function}"


def module_of(path: str) -> str:
    """Return the dotted module name of an archive path."""
    parts = path.removesuffix(".py").removeprefix("src/").split("/")
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)


def marked(text: str, wanted: frozenset[str] = frozenset()) -> list[int]:
    """Return the sorted numbers of the lines that hold a word without which a function is of no interest."""
    found: set[int] = set()
    for word in wanted or _WORDS:
        line, position = 1, 0
        while (at := text.find(word, position)) >= 0:
            line += text.count("\n", position, at)
            found.add(line)
            position = at + 1
    return sorted(found)


def decoded(source: bytes) -> str:
    """Return the text of a module as Python decodes it: byte order mark, declared encoding, any newlines.

    Raises: SyntaxError, UnicodeDecodeError: it cannot be decoded.
    """
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    text = source.decode(encoding)
    return _NEWLINES.sub("\n", text) if "\r" in text else text


def report_of(source: bytes, path: str, wanted: frozenset[str] = frozenset()) -> FileReport:
    """Return what one file tells; a file that cannot be read says why in `failed`."""
    report = FileReport(path=path, module=module_of(path))
    try:
        text = decoded(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the read source are none of our business
            tree = ast.parse(text, filename=path)
        lines = text.split("\n")
        report.lines = len(lines) - (not lines[-1])
        Visitor(report, lines, marked(text, wanted), wanted).module(tree)
    except SyntaxError as error:
        report.failed = f"line {error.lineno}: {error.msg}" if error.lineno else str(error.msg)
    except (ValueError, LookupError) as error:
        report.failed = f"{type(error).__name__}: {error}"[:300]
    except RecursionError:
        report.failed = "nested too deeply to be read"
    except MemoryError:
        report.failed = "nested too deeply to be parsed"
    return report

"""The pinned releases themselves, against plain text search and counts that do not use the miner."""

from __future__ import annotations

import ast
import random
import re
import warnings
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from app.mine import cache as mined_cache
from app.mine import packages, wheels
from app.mine.globs import pattern_of
from app.mine.model import MinedRelease, Site
from app.mine.sites import sites_of

pytestmark = pytest.mark.corpus

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = wheels.pinned_versions("sglang")
NEWEST = VERSIONS[-1]
CONFIGURATOR = "sglang/srt/mem_cache/kv_cache_configurator.py"
# Release -> the line of the `raise` in KVCacheConfigurator._init_pools that refuses models without hybrid pools.
UNIFIED_LINES = dict(zip(VERSIONS, (371, 420, 466, 477, 522, 597, 637), strict=True))
SAMPLES = 200


@cache
def wheel(version: str) -> wheels.Archive:
    return wheels.archive(wheels.fetch("sglang", version, ROOT / "var" / "wheels"))


@cache
def release(version: str) -> MinedRelease:
    exclude = packages.origin("sglang").exclude
    return mined_cache.mined(wheel(version), ROOT / "var" / "mined", package="sglang", version=version, exclude=exclude)


@cache
def lines_of(version: str, path: str) -> list[str]:
    with zipfile.ZipFile(wheel(version).path) as archive:
        return archive.read(path).decode("utf-8-sig").splitlines()


def configurator(version: str) -> list[Site]:
    with wheel(version).reader() as reader:
        return sites_of(reader.read(CONFIGURATOR), CONFIGURATOR)


def pool_errors(version: str) -> list[Site]:
    return [site for site in configurator(version) if site.function == "KVCacheConfigurator._init_pools"]


@pytest.mark.parametrize("version", VERSIONS)
def test_finds_the_refusal_of_models_without_hybrid_pools_at_its_line(version: str) -> None:
    found = [s for s in pool_errors(version) if s.template.text.startswith("--enable-unified-memory only supports")]

    assert [(site.line, site.exception) for site in found] == [(UNIFIED_LINES[version], "ValueError")]
    assert "self.model_config.hf_config.architectures" in found[0].template.holes
    assert any("get_memory().enable_unified_memory" in guard for guard in found[0].guards)


def test_finds_the_refusal_of_speculative_decoding_in_two_releases_only() -> None:
    text = "only supported for hybrid-Mamba targets; the unified hybrid-SWA pool's draft sizing"

    found = [version for version in VERSIONS if any(text in site.template.text for site in configurator(version))]

    assert found == ["0.5.18", "0.5.19"]


def test_agrees_with_a_plain_text_search() -> None:
    """Of sampled sites, the statement stands at the line and every literal within it, as plain text."""
    chosen = random.Random(20260928).sample([(v, s) for v in VERSIONS for s in release(v).sites], SAMPLES)

    wrong = [(v, s.path, s.line, why) for v, s in chosen if (why := disagreement(v, s))]

    assert wrong == []


def test_finds_most_texts_whole_in_the_statement_itself() -> None:
    """Only texts that are built elsewhere, or quote an expression (`{x=}`), are not there as they are read."""
    sites = [site for site in release(NEWEST).sites if site.template]
    chosen = random.Random(20260928).sample(sites, SAMPLES)

    found = [site for site in chosen if all(text in written(NEWEST, site) for text in texts_of(site))]

    assert len(found) > 0.9 * SAMPLES


def written(version: str, site: Site) -> str:
    """Return the statement's text with the escapes of its strings undone."""
    text = squeezed("\n".join(lines_of(version, site.path)[site.line - 1 : site.end_line]))
    for escaped, plain in (("\\n", "\n"), ('\\"', '"'), ("\\'", "'"), ("{{", "{"), ("}}", "}")):
        text = text.replace(escaped, plain)
    return text


def texts_of(site: Site) -> list[str]:
    return [literal.strip("'\"").strip() for literal in site.template.literals]


def disagreement(version: str, site: Site) -> str:
    """Return what a plain text search does not find of a site, "" if all is there."""
    lines = lines_of(version, site.path)
    statement = lines[site.line - 1].strip()
    word = {"raise": "raise", "assert": "assert"}.get(site.kind, "")
    if not statement.startswith(word):
        return f"line {site.line} is {statement!r}"
    # Texts that are built before the statement, or elsewhere, are searched in the whole release's file.
    near = squeezed("\n".join(lines[site.line - 1 : site.end_line]))
    file = squeezed("\n".join(lines))
    for literal in site.template.literals:
        for piece in re.findall(r"[^\W_]{3,}", literal):
            if piece not in near and piece not in file and not elsewhere(version, piece):
                return f"{piece!r} is nowhere"
    return ""


def squeezed(text: str) -> str:
    """Return the source without the quotes and line breaks between parts of one string."""
    return re.sub(r"[\"']\s*\n\s*[rbfuRBFU]{0,2}[\"']", "", text)


@cache
def whole(version: str) -> str:
    with zipfile.ZipFile(wheel(version).path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".py")]
        return squeezed("\n".join(archive.read(name).decode("utf-8-sig", "replace") for name in names))


def elsewhere(version: str, piece: str) -> bool:
    """Search all of the release: a constant, a base class or a helper may hold the text."""
    return piece in whole(version)


def test_accounts_for_every_raise_and_assert_of_the_newest_release() -> None:
    """Known of the whole wheel: 14,955 assert, 13,684 raise with an exception, 345 without.

    The sites, what was omitted with its reason, and the statements of the excluded files add up to these.
    """
    mined = release(NEWEST)
    counts = Counter(site.kind for site in mined.sites)
    left_out = excluded_statements(NEWEST)

    assert counts["assert"] + left_out["assert"] == 14_955
    assert mined.omitted["raise without an exception"] + left_out["re-raise"] == 345
    existing = mined.omitted["raise of an exception that exists already"]
    assert counts["raise"] + existing + left_out["raise"] == 13_684
    assert existing < 100
    assert mined.failed == ()


def excluded_statements(version: str) -> Counter[str]:
    """Count the statements of the files that data/packages.toml leaves out."""
    excluded = pattern_of(packages.origin("sglang").exclude)
    counts: Counter[str] = Counter()
    with zipfile.ZipFile(wheel(version).path) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in archive.namelist():
            if name.endswith(".py") and excluded.match(name):
                for node in ast.walk(ast.parse(archive.read(name))):
                    if isinstance(node, ast.Raise):
                        counts["raise" if node.exc is not None else "re-raise"] += 1
                    counts["assert"] += isinstance(node, ast.Assert)
    return counts


def test_knows_the_text_of_nearly_every_raise() -> None:
    raised = [
        site for site in release(NEWEST).sites if site.kind == "raise" and site.exception != "NotImplementedError"
    ]
    with_text = [s for s in raised if s.variants or any(literal.strip() for literal in s.template.literals)]

    assert len(with_text) / len(raised) > 0.98


BUILT_ELSEWHERE = {
    ("_execute_server_warmup", "res={res}, res.text={res.text}"),
    ("ensure_divisibility", "{numerator} is not divisible by {denominator}"),
    ("MemoryPoolConfig.__post_init__", "Not enough memory. Please try to increase --mem-fraction-static."),
    ("alloc_token_slots", "Out of memory. Try to lower your batch size."),
    ("CommonKVSender.failure_exception", "KVTransferError(bootstrap_room={self.bootstrap_room}): "),
    ("DecodeCudaGraphRunner.__init__", "Capture cuda graph failed: {e}\nPossible solutions:"),
    ("validate_input_length", "Input length ({len(req.origin_input_ids)} tokens) exceeds the maximum allowed length"),
    ("raise_error_or_warn", "{pool_name} memory leak detected! {token_msg}"),
}


@pytest.mark.parametrize(("function", "text"), sorted(BUILT_ELSEWHERE))
def test_knows_texts_that_are_built_before_or_elsewhere(function: str, text: str) -> None:
    sites = [site for site in release(NEWEST).sites if site.function == function]

    templates = [t.text for s in sites for t in (s.template, *(v.template for v in s.variants))]

    assert any(template.startswith(text) for template in templates)


@pytest.mark.parametrize("version", VERSIONS)
def test_reads_the_options_of_every_release(version: str) -> None:
    options = release(version).options

    assert "--tp-size" in options["tp_size"]
    assert "--enable-unified-memory" in options["enable_unified_memory"]
    assert len(options) > 400

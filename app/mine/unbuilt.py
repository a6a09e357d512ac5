"""Run as a program of its own: save a source distribution as it is, where `pip download` would build it.

`pip download` runs a project's build code to learn its dependencies, and has no switch against it. So pip's own
finder and session are used here (its configuration of indexes, mirrors, certificates and credentials holds) and the
file that they find is saved, nothing more. These are internals of pip: a change of theirs ends in a plain error.

Usage: unbuilt.py PACKAGE VERSION FOLDER
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

MAX_BYTES = 2 * 1024**3


def save(package: str, version: str, folder: Path) -> int:
    """Save the source distribution; return the exit code: 0 saved, 1 there is none."""
    from pip._internal.commands import create_command
    from pip._vendor.packaging.version import Version

    command = create_command("download")
    options, _ = command.parse_args(["--no-deps", "--no-binary", ":all:", "--quiet", "--no-input", package])
    with command.main_context():
        session = command.get_default_session(options)  # type: ignore[attr-defined]
        finder = command._build_package_finder(  # type: ignore[attr-defined]
            options=options, session=session, ignore_requires_python=True
        )
        links = [
            candidate.link
            for candidate in finder.find_all_candidates(package)
            if candidate.version == Version(version) and candidate.link.filename.endswith(".tar.gz")
        ]
        if not links:
            print(f"ERROR: No matching distribution found for {package}=={version}", file=sys.stderr)
            return 1
        link = links[0]
        response = session.get(link.url_without_fragment, headers={"Accept-Encoding": "identity"}, stream=True)
        response.raise_for_status()
        path = folder / Path(link.filename).name
        digest = hashlib.new(link.hash_name) if link.hash_name in hashlib.algorithms_guaranteed else None
        size = 0
        with path.open("wb") as stream:
            for chunk in response.iter_content(1 << 16):
                size += len(chunk)
                if size > MAX_BYTES:
                    path.unlink()
                    print(f"ERROR: {path.name} is larger than {MAX_BYTES} bytes", file=sys.stderr)
                    return 3
                stream.write(chunk)
                if digest is not None:
                    digest.update(chunk)
        if digest is not None and digest.hexdigest() != link.hash:
            path.unlink()
            print(f"ERROR: {path.name}: its {link.hash_name} is not the one that the index names", file=sys.stderr)
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(save(sys.argv[1], sys.argv[2], Path(sys.argv[3])))

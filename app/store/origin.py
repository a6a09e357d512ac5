"""Where a package's source lives, for links."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Origin:
    """A package and its repository. "" is not known.

    Shape: `repository` is "owner/name", `source_root` stands before the wheel's paths ("python/"), `tag` is a
    pattern with `{version}`.
    """

    package: str
    repository: str = ""
    host: str = ""
    source_root: str = ""
    tag: str = ""
    license: str = ""

    def ref(self, version: str) -> str:
        """Return the tag of a release, or the bare version where the pattern of tags is not known."""
        return self.tag.replace("{version}", version) if self.tag else version

    def repository_path(self, path: str) -> str:
        """Return the path in the repository of a path in the wheel."""
        return self.source_root + path

    def wheel_path(self, path: str) -> str:
        """Return the path in the wheel of a path in the repository; other paths as they are."""
        return path.removeprefix(self.source_root)

    def link(self, ref: str, path: str, line: int) -> str | None:
        """Return the address of a line (a path in the wheel) at a tag or commit; None where it is not known."""
        if not (self.repository and self.host and self.tag):
            return None
        return f"{self.host}/{self.repository}/blob/{quote(ref)}/{quote(self.repository_path(path))}#L{line}"

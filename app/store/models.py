"""The tables. All of them are derived: `errata ingest` makes them from wheels and `data/`."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index, LargeBinary, MetaData, String, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """The common base: constraint names are the same on every database, so migrations can name them."""

    metadata = MetaData(naming_convention=NAMING)


class MetaRow(Base):
    """A fact about the whole database: `generation`."""

    __tablename__ = "meta"

    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    value: Mapped[str] = mapped_column(Text)


class PackageRow(Base):
    """A package and where its source lives. `key` says from what its rows were built."""

    __tablename__ = "package"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)
    repository: Mapped[str] = mapped_column(String(200), index=True)
    host: Mapped[str] = mapped_column(String(200))
    source_root: Mapped[str] = mapped_column(String(200))
    tag: Mapped[str] = mapped_column(String(200))
    license: Mapped[str] = mapped_column(String(200))
    key: Mapped[str] = mapped_column(String(64))

    releases: Mapped[list[ReleaseRow]] = relationship(back_populates="package", lazy="raise")


class ReleaseRow(Base):
    """An ingested release. `position` counts from 0, oldest first, within the package."""

    __tablename__ = "release"
    __table_args__ = (UniqueConstraint("package_id", "version"), Index(None, "version"))

    id: Mapped[int] = mapped_column(primary_key=True)
    package_id: Mapped[int] = mapped_column(ForeignKey("package.id"))
    position: Mapped[int]
    version: Mapped[str] = mapped_column(String(100))
    key: Mapped[str] = mapped_column(String(64))
    sha256: Mapped[str] = mapped_column(String(64))
    files: Mapped[int]
    lines: Mapped[int]
    failed: Mapped[str] = mapped_column(Text)
    options: Mapped[str] = mapped_column(Text)
    omitted: Mapped[str] = mapped_column(Text)
    sites: Mapped[int]
    records: Mapped[int]
    raises: Mapped[int]
    templated: Mapped[int]

    package: Mapped[PackageRow] = relationship(back_populates="releases", lazy="raise")


class RecordRow(Base):
    """What a list shows of a record. `key` is its place in the default order: a better record has a smaller one.

    Shape: `words` are what search scores it by, as `search.scored_words` writes them.
    """

    __tablename__ = "record"
    __table_args__ = (Index(None, "module", "key"),)

    key: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(String(16), unique=True)
    package_id: Mapped[int] = mapped_column(ForeignKey("package.id"), index=True)
    kind: Mapped[str] = mapped_column(String(10))
    exception: Mapped[str] = mapped_column(String(200))
    title: Mapped[str] = mapped_column(Text)
    message: Mapped[str] = mapped_column(Text)
    parts: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(10))
    module: Mapped[str] = mapped_column(Text)
    function: Mapped[str] = mapped_column(Text)
    flags: Mapped[str] = mapped_column(Text)
    first: Mapped[str] = mapped_column(String(100))
    last: Mapped[str] = mapped_column(String(100))
    gone_since: Mapped[str] = mapped_column(String(100))
    words: Mapped[str] = mapped_column(Text, server_default="")


class AliasRow(Base):
    """Another id that a record answers to."""

    __tablename__ = "alias"

    alias: Mapped[str] = mapped_column(String(16), primary_key=True)
    record_key: Mapped[int] = mapped_column(ForeignKey("record.key"), index=True)


class WordingRow(Base):
    """What several releases' sites have in common: everything of a `Site` but its place and excerpt, as JSON."""

    __tablename__ = "wording"

    id: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[str] = mapped_column(Text)


class ExcerptRow(Base):
    """A piece of source, zlib-compressed; sites of several releases share it."""

    __tablename__ = "excerpt"

    id: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[bytes] = mapped_column(LargeBinary)


class SiteRow(Base):
    """A record's place in one release."""

    __tablename__ = "site"
    __table_args__ = (Index(None, "release_id"),)

    record_key: Mapped[int] = mapped_column(ForeignKey("record.key"), primary_key=True)
    release_id: Mapped[int] = mapped_column(ForeignKey("release.id"), primary_key=True)
    path: Mapped[str] = mapped_column(Text)
    line: Mapped[int]
    end_line: Mapped[int]
    function: Mapped[str] = mapped_column(Text)
    wording_id: Mapped[int] = mapped_column(ForeignKey("wording.id"), index=True)
    excerpt_id: Mapped[int] = mapped_column(ForeignKey("excerpt.id"), index=True)
    excerpt_line: Mapped[int]


class ChangeRow(Base):
    """What a release changed about a record: new, moved, reworded, guard changed, gone or back."""

    __tablename__ = "change"

    release_id: Mapped[int] = mapped_column(ForeignKey("release.id"), primary_key=True)
    what: Mapped[str] = mapped_column(String(20), primary_key=True)
    record_key: Mapped[int] = mapped_column(ForeignKey("record.key"), primary_key=True, index=True)
    detail: Mapped[str] = mapped_column(String(10))


class RecordFlagRow(Base):
    """A command-line option that a record names."""

    __tablename__ = "record_flag"

    flag: Mapped[str] = mapped_column(String(200), primary_key=True)
    record_key: Mapped[int] = mapped_column(ForeignKey("record.key"), primary_key=True, index=True)


class FacetRow(Base):
    """The records that have one value of one facet: a bit set over `record.key`, zlib-compressed."""

    __tablename__ = "facet"

    dimension: Mapped[str] = mapped_column(String(20), primary_key=True)
    value: Mapped[str] = mapped_column(String(400), primary_key=True)
    total: Mapped[int]
    bits: Mapped[bytes] = mapped_column(LargeBinary)


class DocumentRow(Base):
    """The stored bytes of a record's `Document`."""

    __tablename__ = "document"

    record_key: Mapped[int] = mapped_column(ForeignKey("record.key"), primary_key=True)
    body: Mapped[bytes] = mapped_column(LargeBinary)
    etag: Mapped[str] = mapped_column(String(32))


class PageRow(Base):
    """A rendered page, kept by the web layer. `fingerprint` says from what it was rendered."""

    __tablename__ = "page"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    kind: Mapped[str] = mapped_column(String(20), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    body: Mapped[bytes] = mapped_column(LargeBinary)

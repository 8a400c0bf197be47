"""The reports as people read them: one HTML file that opens without a network, and pictures.

Here: which version, where it is written and how. Not here: what is on the page (html), what is
drawn (charts), the figures (reports), which publication wrote.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import NothingPublished, StorageFailed
from pipelines.reports import REPORTS, Report
from pipelines.settings import Home
from pipelines.warehouse import published
from pipelines.warehouse.database import exists
from pipelines.warehouse.published import Published


@dataclass(frozen=True)
class ReportPage:
    """A page that was written: where, of which version, and how large it is."""

    file: Path
    version: str
    size: int


@dataclass(frozen=True)
class ReportView:
    """A report where no partner is named: sums by its grain, its picture, what it cannot say."""

    report: Report
    rows: int
    totals: Sequence[Mapping[str, object]]
    unsaid: str
    picture: bytes


def report(home: Home, out: Path | None = None) -> ReportPage:
    """Write the published version's reports as one HTML file, whole or not at all.

    Raises NothingPublished where there are none, StorageFailed where the disk refuses.
    """
    # matplotlib, Jinja2 and pandas take a second to load, which no other verb has to wait for.
    from pipelines.run import html  # noqa: PLC0415

    with published.opened(home) as source:
        _reported(source)
        text = html.page(source).encode()
        version = source.version
    file = (out or home.reports / f"report-{version}.html").absolute()
    with _storage(file):
        _put(file, text)
    return ReportPage(file, version, len(text))


def report_views(home: Home, names: Sequence[str]) -> list[ReportView]:
    """Return what may be shown of some reports for ever: no row of a partner is in it.

    Nothing is returned where there are no reports.
    """
    with suppress(NothingPublished):
        return [each for each in published.kept(home, _views) if each.report.name in names]
    return []


def _views(source: Published) -> list[ReportView]:
    from pipelines.run import html  # noqa: PLC0415 as above

    _reported(source)
    told = html.contents(source.database)
    return [
        ReportView(
            each,
            told[each.name].rows,
            html.totals(source.database, each),
            told[each.name].unsaid,
            html.picture(source.database, each),
        )
        for each in REPORTS
    ]


def _reported(source: Published) -> None:
    """Raise NothingPublished for a version without reports."""
    if not exists(source.database, "reports", "contents"):
        raise NothingPublished(
            f"{source.file.name} was published before there were reports in it, or with "
            "reconcile = false: run partner-sync publish, and report again"
        )


@contextmanager
def _storage(file: Path) -> Iterator[None]:
    """Say in words what the disk refuses."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(
            f"{file} cannot be written: {error.strerror or error}. An earlier page and the "
            "published file are as they were; make room or name another --out, and report again."
        ) from None


def _put(file: Path, text: bytes) -> None:
    """Let the page appear whole, readable for everybody."""
    if not file.parent.exists():
        file.parent.mkdir(parents=True)
        file.parent.chmod(0o755)
    descriptor, name = tempfile.mkstemp(prefix=".part-", dir=file.parent)
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        part.chmod(0o644)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)

"""What follows the reading of a night: a version, its books, the checks, the report, messages."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.app.maintenance import rollback
from pipelines.app.nightly import after_reading, build_with_books, sync
from pipelines.app.results import SyncResult
from pipelines.core.errors import ExitCode
from pipelines.core.files import write_durably
from pipelines.finance import remembered
from pipelines.finance.books import make_books
from tests.checks.channel import Channel
from tests.reconcile.books import MAPPING, bill, decide, line, partners, used
from tests.versions.homes import Reading, Stores, read

BREAKS = "SELECT break_id FROM reconciliation.breaks ORDER BY ALL"


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
def night(stores: Stores, channel: Channel, monkeypatch: pytest.MonkeyPatch) -> Stores:
    """Return a home in which a night has read, and nothing is published yet."""
    monkeypatch.setenv("OPS_HOOK", channel.url)
    stores.configure()
    write_durably(stores.home.mapping_file, MAPPING.encode())
    read(stores, Reading(partners(["first"]), "partners"))
    read(stores, Reading([used("u"), used("v")], "usage"))
    read(stores, Reading([bill("b", line("u")), bill("c", line("w"), status="odd")], "billing"))
    settings = {"notify": ("OPS_HOOK",), "notify_summary": ("OPS_HOOK",)}
    return replace(stores, settings=stores.settings.model_copy(update=settings))


def titles(channel: Channel) -> list[str]:
    """Return the titles of what was sent since the last call."""
    sent = [title for title, _kind in channel.heads]
    channel.heads.clear()
    return sent


def page_of(result: SyncResult) -> str:
    assert result.report
    return result.report.read_text("utf-8")


def test_a_night_publishes_reports_and_tells(night: Stores, channel: Channel) -> None:
    result = after_reading(night)
    assert result.build
    assert result.build.is_new
    assert result.published.books
    assert result.published.books.version == 1
    assert "1 open break" in page_of(result)
    summary, findings = titles(channel)
    assert summary == "partner-sync: usage and billing, version 1"
    assert "new" in findings
    assert not result.problems


@pytest.mark.long
def test_a_night_without_news_writes_and_tells_nothing_again(
    night: Stores, channel: Channel
) -> None:
    first = after_reading(night)
    written = page_of(first)
    titles(channel)
    assert first.report
    moment = first.report.stat().st_mtime_ns
    again = after_reading(night)
    assert again.report == first.report
    assert first.report.stat().st_mtime_ns == moment
    assert page_of(again) == written
    assert titles(channel) == []


@pytest.mark.long
def test_the_report_shows_newer_books_of_the_same_version(night: Stores) -> None:
    assert "1 open break" in page_of(after_reading(night))
    ((break_id,),) = night.rows(BREAKS)
    decide(night, "break_resolve", break_id)
    make_books(night)
    result = after_reading(night)
    assert result.build
    assert not result.build.is_new
    assert "1 open break" not in page_of(result), page_of(result)[9000:12000]


@pytest.mark.long
def test_what_fails_after_publishing_is_said_and_holds_nothing_back(
    night: Stores, channel: Channel
) -> None:
    page = night.home.reports / "v00000001.html"
    (page / "a folder in its place").mkdir(parents=True)
    result = after_reading(night)
    assert night.home.link.exists()
    assert result.report is None
    (problem,) = result.problems
    assert "v00000001.html cannot be written" in str(problem)
    assert result.exit_code == ExitCode.NEEDS_ATTENTION
    (findings,) = titles(channel)
    assert "findings" in findings
    remove_folder(page)
    page.parent.rmdir()
    page.parent.write_text("a file in the place of the folder")
    (problem,) = after_reading(night).problems
    assert "reports cannot be written" in str(problem)  # it was called a defect
    page.parent.unlink()
    assert after_reading(night).report == page


def remove_folder(folder: Path) -> None:
    (folder / "a folder in its place").rmdir()
    folder.rmdir()


def test_a_night_that_publishes_nothing_says_what_is_found(night: Stores) -> None:
    result = sync(night, [], lambda *_: None, no_build=True)
    assert (result.build, result.report) == (None, None)
    assert not night.home.link.exists()
    assert result.checks


@pytest.mark.long
def test_a_failure_of_what_finance_remembers_holds_back_no_rows(
    night: Stores, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_stores: Stores) -> None:
        raise KeyError("a column that is not there")

    with monkeypatch.context() as broken:
        broken.setattr(remembered, "follow_published", fail)
        result = after_reading(night)
    assert result.build
    assert result.build.is_new
    assert "cannot be taken over: unexpected KeyError" in caplog.text
    assert "books_outdated" in {each.code for each in result.findings}
    assert after_reading(night).published.books


@pytest.mark.long
@pytest.mark.parametrize(
    "keep", [2, *(pytest.param(keep, marks=pytest.mark.slow) for keep in (1, 3))]
)
def test_early_versions_take_no_place_of_those_that_a_rollback_needs(
    night: Stores, keep: int
) -> None:
    stores = night.changed(keep_versions=keep)
    ids = ["u", "v"]
    for early in (False, False, True, True, False):
        ids.append(f"w{len(ids)}")
        read(stores, Reading([used(each) for each in ids], "usage"))
        number = build_with_books(stores, early=early).version
        assert number
        kept = [version.number for version in stores.warehouse.versions()]
        assert kept[-1] == number.number
        assert sum(each in {3, 4} for each in kept) == early  # one at most, while the night lasts
    assert kept == [1, 2, 5][-keep:]
    if keep > 1:
        assert "now see version 2" in rollback(stores, None, "a test")
        assert [version.number for version in stores.warehouse.versions()] == [1, 2, 5][-keep:]

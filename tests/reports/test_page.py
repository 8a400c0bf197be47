"""The page of the reports: everything on it is true, escaped, and from this file alone."""

import re
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import pytest

from pipelines import run
from pipelines.errors import NothingPublished, StorageFailed
from pipelines.reports import REPORTS
from pipelines.settings import Home
from tests.cli import program
from tests.reports.conftest import CLOSES, HOSTILE, META, RECONCILIATION, made

MANY = """
INSERT INTO reconciliation.summary SELECT 'default', DATE '2026-09-01', 'p' || i,
    repeat('<b>&"', 200), 'EUR', 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 'balanced', NULL
FROM range(6000) AS r(i);
INSERT INTO reconciliation.breaks
SELECT breaks.* REPLACE ('C' || i AS break_id, repeat('&', 4000) AS note)
FROM reconciliation.breaks, range(900) AS r(i) WHERE break_id = 'Baaaaaaaaaaaa';
INSERT INTO reconciliation.break_rows SELECT 'C' || (i // 20), 'usage', repeat('"', 3000), 1, 1,
    'page', i FROM range(18000) AS r(i);
"""


class Seen(HTMLParser):
    """What a browser would see: the tags with their attributes, the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.said += data

    def having(self, attribute: str) -> list[str]:
        return [value or "" for _tag, given in self.tags if (value := given.get(attribute))]


@pytest.fixture(scope="module")
def page(home: Home) -> str:
    return run.report(home).file.read_text()


@pytest.fixture(scope="module")
def seen(page: str) -> Seen:
    return Seen(page)


def published(folder: Path, *scripts: str) -> Home:
    home = Home(folder / "home")
    home.prepare()
    file = home.published / "warehouse.v00000007.duckdb"
    made(file, *scripts).close()
    home.link.symlink_to(file)
    return home


def test_it_lies_in_the_home_for_everybody(home: Home, page: str) -> None:
    file = home.reports / "report-v00000042.html"
    assert file.read_text() == page
    assert (file.stat().st_mode & 0o777, home.reports.stat().st_mode & 0o777) == (0o644, 0o755)
    assert [each.name for each in home.reports.iterdir()] == [file.name]


def test_its_head_says_what_it_is_made_of(seen: Seen) -> None:
    said = " ".join(seen.said.split())
    assert "Data as of 2026-11-21 02:05 UTC · published 2026-11-21 03:12 UTC" in said
    assert "version v00000042" in said
    assert "In doubt: billing: PARTIAL usage: COMPLETE" in said
    assert "Not evaluated quantity_mismatch: usage.quantity is not mapped" in said


def test_every_report_is_on_it_with_its_figures(seen: Seen) -> None:
    assert {each.name for each in REPORTS} < set(seen.having("id"))
    for figure in ("16,155,812,057,580,869", "30.11", "0.001", "4.125"):
        assert figure in seen.said
    assert "3 records restated since sign-off, net +12.40" in seen.said
    assert [tag for tag, _given in seen.tags].count("svg") == len(REPORTS)


def test_a_break_opens_to_its_rows_and_says_where_the_others_are(seen: Seen) -> None:
    breaks = [given["id"] for tag, given in seen.tags if tag == "details"]
    assert breaks == ["Baaaaaaaaaaaa", "Bbbbbbbbbbbbb", "Bcccccccccccc"]  # worst first
    assert "#Baaaaaaaaaaaa" in seen.having("href")
    said = " ".join(seen.said.split())
    assert "10 more rows in reconciliation.break_rows where break_id = 'Bbbbbbbbbbbbb'" in said
    assert "Bdddddddddddd" not in said  # resolved
    assert "The amounts differ." in said
    assert "Ask." in said


def test_nothing_is_fetched_and_only_our_script_runs(page: str, seen: Seen) -> None:
    assert [given for tag, given in seen.tags if tag == "script"] == [{}]
    assert not seen.having("src")
    assert all(link.startswith("#") for link in seen.having("href") + seen.having("xlink:href"))
    policy = seen.having("content")[0]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert not re.search(r"url\((?!#)|@import", page)


def test_every_value_is_escaped(page: str, seen: Seen) -> None:
    assert HOSTILE not in page
    assert seen.said.count(HOSTILE) >= 6
    assert 'Beta & $x$ "Co"' in seen.said


def test_it_stays_small_and_says_what_is_left_out(tmp_path: Path) -> None:
    written = run.report(published(tmp_path, META, RECONCILIATION, MANY))
    assert written.size < 2_000_000
    said = " ".join(Seen(written.file.read_text()).said.split())
    assert re.search(r"5,\d{3} more rows in reports\.billing_by_partner", said)
    assert re.search(r"\d{3} more open breaks in reconciliation\.breaks", said)


def test_without_a_mapping_it_says_why_nothing_is_there(tmp_path: Path) -> None:
    written = run.report(published(tmp_path, META), tmp_path / "elsewhere" / "page.html")
    said = Seen(written.file.read_text()).said
    assert "there is no reconciliation.summary" in said
    assert "COMPLETE" in said
    assert not (tmp_path / "home" / "reports").exists()


def test_where_nothing_can_be_shown_or_written_it_says_so(tmp_path: Path, home: Home) -> None:
    with pytest.raises(NothingPublished, match="nothing was published yet"):
        run.report(Home(tmp_path))
    file = tmp_path / "warehouse.v00000001.duckdb"
    duckdb.connect(file).close()
    (tmp_path / "warehouse.duckdb").symlink_to(file)
    with pytest.raises(NothingPublished, match="before there were reports in it"):
        run.report(Home(tmp_path))
    (tmp_path / "file").touch()
    with pytest.raises(StorageFailed, match="name another --out"):
        run.report(home, tmp_path / "file" / "page.html")


def test_what_is_shown_for_ever_names_no_partner(home: Home) -> None:
    views = run.report_views(home, [each.name for each in REPORTS])
    assert [view.report for view in views] == list(REPORTS)
    for view in views:
        assert view.picture.startswith(b"\x89PNG")
        told = str(view.totals)
        assert view.totals
        assert "window.hit" not in told
        assert "Beta" not in told


def test_the_verb_says_where_the_page_is(tmp_path: Path) -> None:
    home = published(tmp_path, META, RECONCILIATION, CLOSES)
    done = program.ran({"PARTNER_SYNC_HOME": str(home.root)}, "report")
    file = home.reports / "report-v00000007.html"
    assert done.returncode == 0, done.stderr
    size = file.stat().st_size
    assert done.stdout.splitlines() == [f"report of v00000007: {file} ({size:,} bytes)"]


def test_the_pack_is_a_workbook_too(tmp_path: Path) -> None:
    home = published(tmp_path, META, RECONCILIATION, CLOSES)
    asked = ("export", "reports.reconciliation_pack", "--to", "xlsx")
    done = program.ran({"PARTNER_SYNC_HOME": str(home.root)}, *asked)
    assert done.returncode == 0, done.stderr
    assert "reports.reconciliation_pack: 10 rows in reports.reconciliation_pack.xlsx" in done.stdout
    assert (home.exports / "xlsx" / "reports.reconciliation_pack.xlsx").is_file()

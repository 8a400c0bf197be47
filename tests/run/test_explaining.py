"""Figures of a real month walked back to archived pages, and what is said where they cannot be."""

import re
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines import run
from pipelines.errors import ConfigurationError
from pipelines.run import Explanation, raw
from pipelines.settings import Settings, mapping
from pipelines.warehouse import redaction
from tests.cli.program import ran

PAGE = (Path(__file__).parents[2] / "docs" / "reconciliation.md").read_text(encoding="utf-8")
LISTS = ("partners", "usage", "billing")
FIGURES = (
    *("used_rows", "used_quantity", "expected_amount", "used_amount", "billed_amount"),
    "difference",
)


def wrong(home: Path) -> list[tuple[Any, ...]]:
    """Return partners whose September does not balance: id, name, currency and figures."""
    with duckdb.connect(home / "warehouse.duckdb", read_only=True) as reader:
        return reader.execute(
            "SELECT partner, partner_name, currency, used_amount, billed_amount, variance "
            "FROM reconciliation.summary WHERE month = '2026-09-01' AND variance <> 0 "
            "AND partner_name IS NOT NULL ORDER BY abs(variance), partner"
        ).fetchall()


@pytest.fixture
def home(planted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(planted, tmp_path / "home", symlinks=True))


@pytest.fixture(scope="module")
def breaks(planted: Path) -> list[str]:
    """Return a break of each rule and cause, the first an amount that is off by 0.01."""
    with duckdb.connect(planted / "warehouse.duckdb", read_only=True) as reader:
        found = reader.execute(
            "SELECT min(break_id) FROM reconciliation.breaks GROUP BY rule, cause "
            "ORDER BY rule <> 'amount_mismatch', rule, cause"
        ).fetchall()
    return [each for (each,) in found]


def explained(home: Path, *targets: str) -> list[Explanation]:
    with run.open(Settings(home=home, reconcile=True)) as session:
        return [each for target in targets for each in run.explain(session, target)]


def test_breaks_of_every_rule_are_the_same_again_from_archived_pages(
    planted: Path, breaks: list[str]
) -> None:
    found = explained(planted, *breaks)
    assert len(found) == len(breaks) > 5
    assert [each.title for each in found if not each.equal] == []
    assert all(each.lines and each.pages and each.figures for each in found)
    off = next(each for each in found if "rule amount_mismatch" in each.words[0])
    assert [str(each.again) for each in off.figures][-1] == "0.01"
    assert {line.side for line in off.lines} == {"usage", "billing"}
    assert all(page.read and page.read.status == 200 for page in off.pages)


def test_a_month_is_the_same_again_for_a_partner_and_for_all(planted: Path) -> None:
    partner, name = wrong(planted)[0][:2]
    one, same, *every = explained(planted, f"{partner}/2026-09", f"{name}/2026-09", "all/2026-09")
    assert [figure.name for figure in one.figures] == list(FIGURES)
    assert one.title == same.title
    assert len(every) > 2
    assert [each.title for each in (one, same, *every) if not each.equal] == []
    with run.open(Settings(home=planted, reconcile=True)) as session:
        (euros,) = run.explain(session, "all/2026-09", "EUR", whole=True)
    assert euros.title.endswith("EUR")
    assert euros.equal
    assert [figure.name for figure in euros.figures][len(FIGURES)] == "used_rows of every page"
    assert len(euros.figures) == 2 * len(FIGURES)


def test_the_rows_of_every_list_are_counted_again(planted: Path) -> None:
    found = explained(planted, *LISTS)
    assert [each.title for each in found] == [f"default · {name}" for name in LISTS]
    assert all(each.equal for each in found)
    assert [int(each.figures[0].again or 0) for each in found][:2] == [80, 1200]
    assert [each.words[0].partition(":")[0] for each in found] == list(LISTS)


def test_twenty_lines_without_our_code_say_the_same(planted: Path, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.split("## Explain")[1], re.DOTALL)
    assert len([line for line in code.splitlines() if line]) == 20
    (tmp_path / "explain.py").write_text(code)
    for partner, _name, currency, *figures in wrong(planted)[:2]:
        done = subprocess.run(
            [sys.executable, "explain.py", str(planted), partner, "2026-09", currency],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        used, billed, difference = map(Decimal, done.stdout.split()[1::2])
        assert [used, billed, difference] == figures
        assert difference


def test_a_damaged_page_is_said_and_ends_with_1(home: Path, breaks: list[str]) -> None:
    digest = explained(home, breaks[0])[0].pages[0].digest
    file = home / "archive" / "pages" / digest[:2] / f"{digest}.json.zst"
    other = next(each for each in file.parent.parent.rglob("*.zst") if each != file)
    sound = ran({"PARTNER_SYNC_HOME": str(home)}, "explain", breaks[0])
    shutil.copy2(other, file)
    done = ran({"PARTNER_SYNC_HOME": str(home)}, "explain", breaks[0])

    assert (sound.returncode, "the same again from" in sound.stdout) == (0, True), sound.stderr
    assert f"{digest[:2]}/{digest}.json.zst" in sound.stdout
    assert done.returncode == 1
    assert "was changed since it was read" in done.stderr
    assert "NOT EQUAL" in done.stdout


def test_a_page_from_which_others_were_erased_still_explains_and_says_so(home: Path) -> None:
    with run.open(Settings(home=home, reconcile=True)) as session:
        name = f"{wrong(home)[0][0]}/2026-09"
        (before,) = run.explain(session, name)
        digest, own = before.pages[0].digest, {each.raw.row for each in before.lines}
        other = next(row for row in range(len(own) + 1) if row not in own)
        act = run.Act("ann", session.clock.now(), "request 7")
        session.archive.redact([redaction.redacted(session.archive, digest, [other], act)])
        (after,) = run.explain(session, name)
        gone = raw.Opener(session).record(digest, other)
    assert (before.redactions, after.equal) == ([], True)
    words = f"{digest[:12]}: 1 of its records erased on {act.at:%Y-%m-%d} by ann: request 7"
    assert after.redactions == [f"page {words}"]
    assert gone.trouble == "the record was erased"


def test_what_nobody_mapped_is_not_made_up(home: Path) -> None:
    file = home / "config" / mapping.FILE
    file.write_text('[usage]\nperiod = "period.start"\n[billing]\nperiod = "period.start"\n')
    published = ran({"PARTNER_SYNC_HOME": str(home)}, "publish")
    assert published.returncode == 0, published.stderr
    (found,) = explained(home, "all/2026-09")
    assert found.equal
    assert [one.name for one in found.figures if one.published is not None] == ["used_rows"]
    assert any("not evaluated: no amount" in words for words in found.words)


def test_a_figure_that_the_pages_do_not_give_is_said(home: Path, breaks: list[str]) -> None:
    file = home / "config" / mapping.FILE
    file.write_text(file.read_text().replace('amount = "amount"', 'amount = "unitPrice"'))
    (found,) = explained(home, breaks[0])
    assert not found.equal
    assert any("another amount was sent" in each for each in found.troubles)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("B000000000000", "there is no break B000000000000"),
        ("b00000000000A", "there is no break B00000000000a"),
        ("2026-09", "nor a list that was read"),
        ("x/2026-13", "is neither a break"),
        ("nobody/2026-09", "no row of nobody in 2026-09"),
    ],
)
def test_what_is_not_there_is_refused(planted: Path, target: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        explained(planted, target)


RECORD = {"a": {"b": "12.50"}, "lines": [{"n": "1"}, {"n": "x"}], "when": "2026-09-01"}


@pytest.mark.parametrize(
    ("path", "place", "found"),
    [
        ("a.b", None, "12.50"),
        ("lines[].n", 0, "1"),
        ("lines[].n", 1, None),
        ("lines[].n", 2, None),
        ("lines[].n", None, None),
        ("a.c", None, None),
        ("when", None, None),
        (None, None, None),
    ],
)
def test_a_number_is_taken_by_its_path(
    path: str | None, place: int | None, found: str | None
) -> None:
    number = raw.Raw("", 0, RECORD).number(path, place)
    assert (number is None) == (found is None)
    assert number is None or str(number) == found

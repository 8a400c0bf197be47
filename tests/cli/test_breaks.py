"""Breaks from the command line: what the verbs print, what they refuse, and what stays of it."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from pipelines.settings import Home
from pipelines.state import breaks, database
from pipelines.state.breaks import Finding
from tests.cli.program import ran

NIGHT = datetime(2026, 11, 3, 1, tzinfo=UTC)
OCTOBER = date(2026, 10, 1)
EURO = Finding(
    *("B00000000000a", "amount_mismatch", "default", "p-1", OCTOBER, "EUR", "u-1", "price"),
    *(Decimal("10.000"), Decimal("9.990"), Decimal("-0.010"), 2),
)
YEN = replace(EURO, break_id="B00000000000b", partner="p-2", currency="JPY", difference=Decimal(7))
MISSING = replace(
    EURO, break_id="B00000000000c", rule="usage_without_billing", difference=Decimal("-100.10")
)
ORPHAN = replace(
    EURO, break_id="B00000000000d", rule="orphan_partners", currency=None, difference=None
)
GONE = replace(EURO, break_id="B00000000000e")
PUBLISHED = """
CREATE SCHEMA reconciliation;
CREATE TABLE reconciliation.breaks (break_id VARCHAR, severity VARCHAR, partner_name VARCHAR,
                                    age_days BIGINT, artefact BOOLEAN, artefact_reason VARCHAR);
INSERT INTO reconciliation.breaks VALUES
    ('B00000000000a', 'low', 'Müller [GmbH]', 9, false, NULL),
    ('B00000000000b', 'high', 'Sato', 0, true, 'at a repaired seam'),
    ('B00000000000c', 'low', 'Müller [GmbH]', 1, false, NULL)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home in which rules found five breaks, one of which is gone."""
    home = Home(tmp_path_factory.mktemp("breaks"))
    home.prepare()
    ledger = database.connect(home.state)
    everything = [EURO, YEN, MISSING, ORPHAN, GONE]
    breaks.sight(ledger, everything, NIGHT, ["amount_mismatch"])
    breaks.sight(ledger, everything[:-1], NIGHT, ["amount_mismatch"])
    ledger.dispose()
    file = home.published / "warehouse.v00000001.duckdb"
    with duckdb.connect(file) as writer:
        writer.execute(PUBLISHED)
    home.link.symlink_to(file.relative_to(home.root))
    return home.root


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Mapping[str, str]:
    root = Path(shutil.copytree(made, tmp_path / "home", symlinks=True))
    return {"PARTNER_SYNC_HOME": str(root), "PARTNER_SYNC_BASE_URL": "http://127.0.0.1:9"}


def lines(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines()]


def test_breaks_are_listed_the_gravest_first_with_a_total_by_currency(
    home: dict[str, str],
) -> None:
    listed = ran(home, "breaks")
    assert listed.returncode == 0, listed.stderr
    told = [each for each in lines(listed.stdout) if each and each[0].startswith("B0")]
    order = [YEN, MISSING, EURO, ORPHAN]
    assert [each[0] for each in told] == [each.break_id for each in order]
    assert "Müller [GmbH]" in listed.stdout
    assert "OPEN (paging artefact)" in listed.stdout
    assert ["EUR", "2", "-100.11"] in lines(listed.stdout)
    assert ["JPY", "1", "7"] in lines(listed.stdout)
    assert ["no", "amount", "1"] in lines(listed.stdout)


FILTERS = [
    (["--rule=orphan_partners"], ["d"]),
    (["--partner", "müller [gmbh]"], ["c", "a"]),
    (["--partner=p-2", "--month=2026-10"], ["b"]),
    (["--month=2026-09"], []),
    (["--severity=high"], ["b"]),
    (["--state=resolved"], ["e"]),
    (["--most=1"], ["b"]),
]


@pytest.mark.parametrize(("options", "wanted"), FILTERS)
def test_a_filter_leaves_what_it_names(
    home: dict[str, str], options: list[str], wanted: list[str]
) -> None:
    listed = ran(home, "breaks", "list", *options)
    told = [each[0][-1] for each in lines(listed.stdout) if each and each[0].startswith("B0")]
    assert (listed.returncode, told) == (0, wanted)


def test_what_people_did_is_kept_with_the_difference_of_that_time(home: dict[str, str]) -> None:
    which = EURO.break_id
    given = ran(home, "breaks", "assign", which, "--to", "bob", "--by=ann")
    waits = ran(home, "breaks", "assign", which, "--to=bob", "--pending", "--note=they look")
    note = "--note=a cent, [agreed]"
    done = ran(home, "breaks", "resolve", which.lower(), "--reason=written-off", note, "--by=ann")
    rest = ran(home, "breaks", "list")
    again = ran(home, "breaks", "reopen", which, "--note=it was two", "--by=cid")
    shown = ran(home, "breaks", "show", which)

    assert "B00000000000a is ASSIGNED, bob looks after it" in given.stdout
    assert "from the next publication on; `partner-sync publish` publishes at once" in given.stdout
    assert "is PENDING" in waits.stdout
    assert "is RESOLVED" in done.stdout, done.stderr
    assert which not in rest.stdout
    assert "is ASSIGNED, bob looks after it" in again.stdout
    acts = [each[2:] for each in lines(shown.stdout) if each[:1] and each[0].startswith("20")]
    assert [each[1] for each in acts] == ["assign", "pend", "resolve", "reopen"]
    assert acts[2] == ["ann", "resolve", "-0.01", "written-off:", "a", "cent,", "[agreed]"]
    assert ["subject", "u-1"] in lines(shown.stdout)


REFUSED = [
    (["show", "B0"], "there is no break 'B0' in this home"),
    (["assign", "B00000000000f", "--to=bob"], "there is no break 'B00000000000f'"),
    (["assign", EURO.break_id, "--to= "], "--to is empty"),
    (["resolve", EURO.break_id, "--reason=other", "--note="], "--note is empty"),
    (["resolve", EURO.break_id, "--note=x"], "--reason"),
    (["resolve", EURO.break_id, "--reason=boredom", "--note=x"], "boredom"),
    (["reopen", EURO.break_id, "--note=x"], "is OPEN, not resolved: there is nothing to reopen"),
    (["reopen", GONE.break_id, "--note=x"], "resolved by evidence"),
    (["assign", GONE.break_id, "--to=bob"], "resolved by evidence"),
]


@pytest.mark.parametrize(("arguments", "why"), REFUSED)
def test_what_cannot_be_done_is_refused(
    home: dict[str, str], arguments: list[str], why: str
) -> None:
    refused = ran(home, "breaks", *arguments)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert why in refused.stderr


def test_a_resolved_break_is_changed_only_after_it_was_reopened(home: dict[str, str]) -> None:
    ran(home, "breaks", "resolve", EURO.break_id, "--reason=other", "--note=small", "--by=ann")
    refused = ran(home, "breaks", "assign", EURO.break_id, "--to=bob")
    assert refused.returncode == 2
    assert "was resolved by ann (other: small)" in refused.stderr
    assert f"`partner-sync breaks reopen {EURO.break_id} --note" in refused.stderr


def test_without_a_published_table_the_ledger_is_listed(home: dict[str, str]) -> None:
    (Path(home["PARTNER_SYNC_HOME"]) / "warehouse.duckdb").unlink()
    listed = ran(home, "breaks")
    assert listed.returncode == 0, listed.stderr
    told = [each[0] for each in lines(listed.stdout) if each and each[0].startswith("B0")]
    assert told == [MISSING.break_id, EURO.break_id, YEN.break_id, ORPHAN.break_id]

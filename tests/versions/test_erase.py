"""Every record that contains an identifier is erased, and nothing else."""

import shutil
from typing import Any

import pytest
from sqlalchemy import select

from pipelines.app.maintenance import verify_files
from pipelines.app.nightly import build_with_books, rebuild_with_books
from pipelines.cli.terminal import confirm
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.metadata.runs import Outcome
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import BreakRow, Run, Scan
from pipelines.versions.identifier import Identifier, raw_rows
from pipelines.versions.prune import prune
from pipelines.warehouse.books import BooksFolder
from tests.versions.homes import Reading, Record, Stores, list_state, read, usage
from tests.versions.named import NAME, OTHERS, erase, files_with

CURRENT = "SELECT _key, amount, _valid_from FROM current.usage ORDER BY _key"
HISTORY = "SELECT _key, amount, _valid_from, _valid_to, _end_reason FROM history.usage ORDER BY ALL"


@pytest.mark.long
def test_records_with_an_identifier_are_erased_and_nothing_else(named: Stores) -> None:
    folder = named.home.root
    exports = named.home.exports
    exports.mkdir()
    (exports / "usage.csv").write_text(NAME)
    before = [row for row in named.rows(HISTORY) if row[0].startswith("u")]
    assert len(files_with(folder)) == 5
    with pytest.raises(ConfigurationError, match="Nothing was changed"):
        erase(named, confirm=lambda: confirm("Erase?", yes=False))
    assert len(files_with(folder)) == 5
    assert erase(named) == 4
    assert files_with(folder) == []
    assert named.rows(HISTORY) == before
    assert named.rows("SELECT count(*) FROM history.usage__lines") == [(11,)]
    assert named.rows("SELECT count(*) FROM quarantine.records") == [(0,)]
    assert named.versions() == {1: "published", 2: "deleted", 3: "deleted", 4: "published"}
    assert verify_files(named)["damaged"] == []
    current = named.rows(CURRENT)
    assert rebuild_with_books(named).is_new
    assert named.rows(CURRENT) == current
    assert named.rows("SELECT rows, sentence FROM meta.loads ORDER BY valid_time")[1][0] == 10
    with pytest.raises(ConfigurationError, match="No file contains the value"):
        erase(named)
    moment = "2026-10-01T00:00:00+05:30"  # which no column spells as it was sent
    read(named, Reading([*usage(*range(1, 13)), {"id": "at", "at": moment}]))
    build_with_books(named)
    assert erase(named, moment) == 2
    assert named.keys() == sorted(f"u{number}" for number in range(1, 13))


@pytest.mark.long
def test_what_runs_say_of_their_lists_is_erased(named: Stores) -> None:
    with named.metadata.transaction() as session:
        run = session.scalars(select(Run)).first()
        assert run
        run.lists = {"usage": list_state(Outcome.FAILED, f"It quotes {NAME}.")}
    assert erase(named) == 4
    with named.metadata.transaction() as session:
        assert session.get_one(Run, run.run_id).lists["usage"]["message"] == "It quotes [erased]."
    named.metadata.close()
    assert files_with(named.home.root) == []


@pytest.mark.long
def test_a_defect_of_finance_keeps_no_record_that_is_to_be_erased(
    named: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise KeyError("month")

    with monkeypatch.context() as patched:
        patched.setattr(BooksFolder, "link", fail)
        with pytest.raises(PartnerSyncError, match=r"are erased, but .* KeyError"):
            erase(named)
    named.metadata.close()
    assert files_with(named.home.root) == []
    assert BooksFolder(named.warehouse).every() == []
    build_with_books(named)
    assert BooksFolder(named.warehouse).published()


def test_a_break_without_a_cause_is_not_forgotten_with_the_value_none(named: Stores) -> None:
    now = named.clock.utc_now()
    known: dict[str, Any] = {"version": 1, "break_id": "b", "rule": "not_billed", "rows": 1}
    known |= {"connection": "acme", "first_seen": now, "last_seen": now}
    known |= dict.fromkeys(["subject", "partner", "month", "currency", "cause"])
    known |= dict.fromkeys(["used_amount", "billed_amount", "difference"])
    known |= dict.fromkeys(["gone_at", "returned_at"])
    with named.metadata.transaction() as session:
        session.add(BreakRow(**known))
    read(named, Reading([*OTHERS, {"id": "u99", "name": "None"}]))
    build_with_books(named)
    assert erase(named, "None")
    with named.metadata.transaction() as session:
        assert session.query(BreakRow).count() == 1


@pytest.mark.long
def test_what_is_only_in_a_version_and_what_was_never_loaded_is_erased_too(named: Stores) -> None:
    prune(named, named.clock.now)
    checkpoint = [number for number, status in named.versions().items() if status == "checkpoint"]
    assert checkpoint == [3]
    newest = read(named, Reading([*OTHERS, {"id": "late", "name": NAME}]))
    file = next(named.home.archive.rglob(f"{newest}*"))
    with named.metadata.transaction() as session:
        session.get_one(Scan, newest).status = ScanStatus.OPEN
    shutil.move(file, f"{file}.open")
    assert erase(named)
    assert files_with(named.home.root) == []
    assert named.statuses()[newest] == "abandoned"
    assert list(named.versions().values()).count("checkpoint") == 1
    read(named, Reading(usage(*range(1, 13))))
    build_with_books(named)
    assert rebuild_with_books(named).is_new


@pytest.mark.parametrize(
    ("identifier", "raw", "is_in"),
    [
        ("a", b'{"x": "a"}', True),
        ("a", b'{"x": "ab", "ba": 1}', False),
        ("a", b'{"x": "\\u0061"}', True),
        ("a", b'{"a": null}', False),
        ('"', b'{"x": "\\""}', True),
        ("12", b'{"x": [1, 12.0]}', True),
        ("12", b'{"x": 1.2e1}', True),
        ("12", b'{"x": 120, "y": "012", "z": 1.2}', False),
        ("0.10", b'{"x": 1e-1}', True),
        ("true", b'{"x": true}', False),
        ("True", b'{"x": true, "y": "\\n"}', False),
        ("None", b'{"x": null, "y": "\\n"}', False),
        ("a", b'{"x": "a", "x": 1}', True),
        ("NaN", b'{"x": "NaN"}', True),
        ("null", b"null", False),
        ("1e99999", b'{"x": 1}', False),
    ],
)
def test_an_identifier_is_a_whole_value_in_any_spelling(
    identifier: str, raw: bytes, *, is_in: bool
) -> None:
    assert Identifier(identifier).is_in_record(raw) == is_in


def test_a_name_of_a_map_is_found_in_any_item_of_a_list() -> None:
    identifier = Identifier("a", frozenset({("lines", None, "by")}))
    assert identifier.is_in_record(b'{"lines": [{"by": {"b": 1}}, {"by": {"a": 2}}]}')
    assert not identifier.is_in_record(b'{"lines": [{"by": {"b": 1}, "a": 1}]}')


# What a pruned scan had; the third has what JSON or DuckDB escape. Who contains a value.
PRUNED: list[Record] = [
    {"id": "a", "n": 17, "price": 1.25, "list": [17, 1.25], "lines": [{"n": 0}, {"n": 0}]},
    {"id": "b", "n": 170, "born": "1980-05-06", "is": True},
    {
        "id": "c",
        "n": 'no "n"',
        "list": ['it"s', "it's", "x\\y"],
        "lines": [{"of": "O'B\n"}, {"of": "."}],
    },
]
IN_PRUNED = dict.fromkeys(('no "n"', 'it"s', "it's", "x\\y", "O'B\n", "."), "c")
IN_PRUNED |= dict.fromkeys(("17", "17.0", "1.25", "1.250"), "a")
IN_PRUNED |= {"2": "u2", "1980-05-06": "b", "true": ""}  # 2 is not the number of its items


def test_a_value_of_a_pruned_scan_is_found_in_the_version(published: Stores) -> None:
    for records in ([*OTHERS, *PRUNED], OTHERS):
        read(published, Reading(records))
        build_with_books(published)
    prune(published, published.clock.now)
    rows = published.rows("SELECT (_scan_id, _page, _row), _key FROM history.usage")
    keys = dict(rows)
    with published.warehouse.open() as db:
        raws = list(raw_rows(db))
    found = {
        value: {at for at, raw in raws if Identifier(value).is_in_record(raw)}
        for value in IN_PRUNED
    }
    assert {value: "".join(keys[at] for at in found[value]) for value in found} == IN_PRUNED

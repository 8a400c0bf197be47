"""A value goes in every form that `erase` promises; other spellings stay, and are shown."""

import json
import os
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from pipelines.app.maintenance import erase_records
from pipelines.app.nightly import build_with_books
from pipelines.core.errors import ConfigurationError
from pipelines.metadata.decisions import finished_erasures
from pipelines.metadata.tables import Scan
from pipelines.versions import erase as erasing
from pipelines.versions.identifier import Identifier
from pipelines.versions.search import SearchResult
from tests.effort import EFFORT
from tests.versions.homes import Reading, Record, Stores, read, usage

VALUE = "josé@example.com"
ESCAPED = json.dumps(VALUE)[1:-1]  # `jos\u00e9@example.com`
ERASED: list[Any] = [VALUE, ESCAPED, json.dumps({"a": [VALUE]}), json.dumps([{"b": VALUE}])]
KEPT: list[tuple[str, str]] = [
    (VALUE.upper(), "letter case"),
    (f" {VALUE}", "spaces"),
    (VALUE.replace("@", " @ "), "spaces"),
    (unicodedata.normalize("NFD", VALUE), "composed letters"),
    (f" {VALUE.upper()}", "letter case, spaces or composed letters together"),
    (f"please ask {VALUE}", "within a longer text"),
    (json.dumps({VALUE: 1}), "name of a field"),
    ("jose@example.com", ""),
]
PLACES: list[Callable[[Any], Record]] = [
    lambda value: {"contact": value},
    lambda value: {"to": ["a@b.c", value]},
    lambda value: {"by": {"who": {"mail": value}}},
    lambda value: {"lines": [{"n": 1}, {"mail": value}]},
    lambda value: {"amount": value},  # in `_extra`: it fits no column of amounts
]


def erase(stores: Stores, text: str = VALUE, *, force: bool = True) -> SearchResult:
    shown = list[SearchResult]()
    erase_records(stores, erasing.ErasureRequest(text, "law", force), shown.append, dict)
    return shown[0]


def is_said(value: Any) -> bool:
    """Return whether a decoded value says it, as a person reads it: a model in plain Python."""
    if isinstance(value, dict):
        return any(map(is_said, value.values()))
    if isinstance(value, list):
        return any(map(is_said, value))
    if not isinstance(value, str):
        return False
    inner = json.loads(value) if value[:1] in ("{", "[") else None
    return value in (VALUE, ESCAPED) or is_said(inner)


def random_record(random: Random, number: int) -> Record:
    """Return a record that says it in some form, says something like it, or has nothing of it."""
    record: dict[str, Any] = {
        "id": f"r{number}",
        "amount": "1.50",
        "note": random.choice(["x", "\\", '"']),
    }
    values = [*ERASED, *(text for text, _ in KEPT), *(["nothing of it"] * 4)]
    record |= random.choice(PLACES)(random.choice(values))
    if random.random() < 0.05:
        del record["id"]  # it goes to quarantine
    elif random.random() < 0.05:
        record["id"] = VALUE
    return record


def test_no_file_says_the_value_afterwards_and_the_others_keep_everything(
    published: Stores,
) -> None:
    random = Random(os.environ.get("SEED", "1"))
    for _ in range(EFFORT):
        records = [random_record(random, number) for number in range(120)]
        records += [{"id": VALUE}, *usage(*range(1, 11))]
        read(published, Reading(records, page_size=50))
        build_with_books(published)
        kept = {each["id"] for each in records if "id" in each and not is_said(each)}
        erase(published)
        assert {*published.keys()} == kept
        with published.metadata.transaction() as session:
            scans = session.query(Scan).all()
        left = []
        for scan in scans:
            for exchange in published.archive.open_sealed(scan).exchanges():
                left += [json.loads(raw) for raw in exchange.records()]
        assert not any(map(is_said, left))
        expected = [each for each in records if not is_said(each)]
        newest = [each for each in left[-len(records) :] if each is not None]
        assert newest == expected
        for number in (each.number for each in published.warehouse.versions()):
            raws = published.rows("SELECT raw FROM quarantine.records", number)
            assert not any(is_said(json.loads(raw)) for (raw,) in raws)
            for (table,) in published.rows("SHOW TABLES FROM warehouse.history", number):
                rows = published.rows(f"FROM history.{table}", number)
                assert not any(is_said(value) for row in rows for value in row)


@pytest.mark.long
def test_other_spellings_are_shown_and_the_shares(published: Stores) -> None:
    records: list[Record] = [{"id": f"k{at}", "contact": text} for at, (text, _) in enumerate(KEPT)]
    records += [{"id": "it", "contact": VALUE}, *usage(*range(1, 11))]
    read(published, Reading(records))
    build_with_books(published)
    found = erase(published)
    assert {each["differs_in"]: each["records"] for each in found.hints} == {
        "composed letters": 1,
        "letter case": 1,
        "letter case, spaces or composed letters together": 1,
        "name of a field": 1,
        "spaces": 2,
        "within a longer text": 1,
    }
    examples = {each["differs_in"]: each["examples"] for each in found.hints}
    assert all(examples.values())
    assert VALUE in examples["within a longer text"][0]
    assert found.shares["acme/usage"] == (1, len(records))
    assert found.shares["all lists"].records == 2  # in a scan file and in a version
    assert published.keys()[-1] == "u9"
    assert len(published.keys()) == len(records) - 1
    with published.metadata.transaction() as session:
        (done,) = finished_erasures(session)
    assert (done["records"], done["files"]) == (1, 2)
    assert VALUE not in str(done)


def test_a_large_share_and_a_short_value_need_force(published: Stores) -> None:
    read(published, Reading([*usage(*range(1, 11)), {"id": "x1", "contact": VALUE}]))
    build_with_books(published)
    before = published.keys()
    with pytest.raises(ConfigurationError, match=r"1 of 11 records of acme/usage \(9.09 %\)") as e:
        erase(published, force=False)
    assert "--force" in e.value.remedy
    with pytest.raises(ConfigurationError, match="fewer than 4 characters"):
        erase(published, " u1 ", force=False)
    assert published.keys() == before
    erase(published)
    assert published.keys() == [each for each in before if each != "x1"]


@pytest.mark.parametrize(
    ("value", "raw", "is_in"),
    [
        ("1500", {"x": '{"a": 1500.0}'}, True),
        ("1500", {"x": '[["1500"]]'}, True),
        ("1500", {"x": '{"1500": 1}'}, False),
        ("1500", {"x": "[1500"}, False),  # no JSON
        ("a\nb", {"x": "a\\nb"}, True),
        ("a\\nb", {"x": "a\\nb"}, True),
        ('say "x"', {"x": json.dumps({"y": json.dumps(['say "x"'])})}, True),
        ("{}", {"x": "{}"}, True),
        (VALUE, {"x": "[" * 5000}, False),
    ],
)
def test_json_text_is_searched_inside(value: str, raw: Record, *, is_in: bool) -> None:
    assert Identifier(value).is_in_record(json.dumps(raw).encode()) == is_in
    assert Identifier(value).is_in_record(json.dumps(raw, ensure_ascii=False).encode()) == is_in


def test_a_share_of_one_percent_needs_no_force(published: Stores) -> None:
    records = usage(*range(1, 100), amount=str(Decimal("2.20")))
    read(published, Reading([*records, {"id": "x1", "contact": VALUE}], page_size=100))
    build_with_books(published)
    assert erase(published, force=False).records == 1

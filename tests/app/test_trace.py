"""A record is followed to the bytes that were sent, or the trace says why they are not proven."""

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pipelines.app.nightly import build_with_books
from pipelines.app.trace import trace
from pipelines.core.errors import ConfigurationError
from tests.versions.homes import Reading, Record, Stores, read, usage


def traced(stores: Stores, key: str) -> dict[str, Any]:
    return trace(stores, "acme", "usage", key)


def load(stores: Stores, *rows: Record) -> str:
    """Read and publish a list of 20 other rows and these; return the scan."""
    scan_id = read(stores, Reading([*usage(*range(20)), *rows], page_size=6))
    build_with_books(stores)
    return scan_id


def file_of(stores: Stores, scan_id: str) -> Path:
    return stores.archive.folder / "acme" / "usage" / f"{scan_id}.jsonl.zst"


def damage(file: Path) -> None:
    file.write_bytes(b"damaged")


@pytest.mark.long
def test_every_version_has_its_request_and_its_bytes(stores: Stores) -> None:
    first = {"id": "a", "amount": "1.10", "lines": [{"n": 1}]}
    second = {"id": "a", "amount": "1.20", "lines": []}
    scans = [load(stores, first), load(stores, {"id": "b"}, second), load(stores)]
    old, new = traced(stores, "a")["versions"]
    assert [old["scan_id"], new["scan_id"]] == scans[:2]
    places = [(each["page"], each["row"], each["offset"]) for each in (old, new)]
    assert places == [(4, 2, 18), (4, 3, 18)]
    assert [old["raw"], new["raw"]] == [json.dumps(first), json.dumps(second)]
    assert [old["end_reason"], new["end_reason"]] == ["changed", "deleted"]
    assert old["valid_to"] == new["valid_from"]
    for each in (old, new):
        assert each["proven"], each["message"]
        assert each["digest"] == sha256(each["raw"].encode()).hexdigest()[:16]
        assert (each["limit"], each["status"], each["request_id"]) == (500, 200, "abc")
        assert each["sent_at"] < each["received_at"]
    with pytest.raises(ConfigurationError, match=r"values of `id`, such as `a`, `b`, `u0`."):
        traced(stores, "nothing")


def test_values_sent_again_in_other_bytes_are_proven_by_the_later_scan(stores: Stores) -> None:
    first = load(stores, {"id": "a", "amount": "1.10"})
    later = load(stores, {"amount": "1.10", "id": "a"})
    (found,) = traced(stores, "a")["versions"]
    assert found["scan_id"] == first
    assert found["proven"]
    assert f"Scan {later}, page 4, row 2 has the digest of the row" in found["message"]
    damage(file_of(stores, later))
    (found,) = traced(stores, "a")["versions"]
    assert not found["proven"]


def test_equal_records_without_a_primary_key_are_proven(stores: Stores) -> None:
    read(stores, Reading([{"n": 1}, {"n": 1}], key=None))
    build_with_books(stores)
    for (key,) in stores.rows("SELECT _key FROM current.usage"):
        (found,) = traced(stores, key)["versions"]
        assert found["proven"], found["message"]
    with pytest.raises(ConfigurationError, match="digests of their content, such as `"):
        traced(stores, "a")


def test_records_in_quarantine_are_shown(stores: Stores) -> None:
    deep: Any = 1
    for _ in range(70):
        deep = [deep]
    load(stores, {"id": "a", "deep": deep})
    found = traced(stores, "a")
    assert found["versions"] == []
    (record,) = found["quarantine"]
    assert (record["proven"], record["offset"]) == (True, 18)
    assert json.loads(record["raw"])["deep"] == deep
    file_of(stores, record["scan_id"]).unlink()
    (left,) = traced(stores, "a")["quarantine"]
    assert (left["proven"], left["raw"], left["text"]) == (False, None, record["raw"])


def test_a_scan_file_that_cannot_be_read_leaves_the_request(stores: Stores) -> None:
    file = file_of(stores, load(stores, {"id": "a"}))
    for harm, words in ((damage, "damaged"), (Path.unlink, "missing")):
        harm(file)
        (found,) = traced(stores, "a")["versions"]
        assert (found["proven"], found["raw"], found["offset"]) == (False, None, 18)
        assert re.fullmatch(rf"Not proven. Scan file .* is {words}.* The row .*", found["message"])
        assert found["remedy"]


@pytest.mark.long
def test_a_scan_file_with_another_record_proves_nothing(stores: Stores) -> None:
    scans = [load(stores, {"id": "a", "n": number}) for number in (1, 2)]
    file = file_of(stores, scans[0])
    file.write_bytes(file_of(stores, scans[1]).read_bytes())
    old, new = traced(stores, "a")["versions"]
    assert (old["proven"], new["proven"]) == (False, True)
    assert "has another record in its place" in old["message"]
    file.write_bytes(file_of(stores, load(stores)).read_bytes())
    assert "has no row 2 on page 4" in traced(stores, "a")["versions"][0]["message"]

"""Lists whose envelope is odd, whose deep offsets are refused, or that a cache answers."""

import json
import re
from collections.abc import Callable, Collection
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import structs

from pipelines.archive.scan_file import OpenScan, SealedScan
from pipelines.core.errors import ServiceError
from pipelines.extract.scan import read_scan
from tests.extract.test_scan import LIMIT, Spare, header, keys
from tests.http.support import Harness, merchant

Change = Callable[[dict[str, Any]], object]


class Odd:
    """A list of rows whose answers are changed; offsets from `cap` on are refused, unless past."""

    def __init__(self, rows: int, change: Change = lambda _page: None, age: int = 0) -> None:
        self.rows, self.change, self.age = rows, change, age
        self.aged = range(999)  # offsets that a cache answers
        self.refused: Collection[int] = range(0)
        self.status = 400
        self.clamped = 999_999  # an offset above it is taken for it
        self.broken = False  # only the page at the first refused offset
        self.moving = False
        self.requests = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        offset = int(request.url.params["offset"])
        if offset in self.refused:
            return httpx.Response(
                self.status, json={"detail": f"offset must be < {min(self.refused)}"}
            )
        offset = min(offset, self.clamped)
        order = list(range(self.rows))
        if self.moving:
            order = order[self.requests % 7 :] + order[: self.requests % 7]
        more = offset + LIMIT < self.rows
        pagination: dict[str, Any] = {"limit": LIMIT, "offset": offset, "has_more": more}
        pagination |= {"next_offset": offset + LIMIT if more else None}
        rows = [{"usageId": f"u{key}"} for key in order[offset : offset + LIMIT]]
        page: dict[str, Any] = {"data": rows, "pagination": pagination}
        self.change(page)
        headers = {"Age": str(self.age)} if self.age and offset in self.aged else {}
        return httpx.Response(200, json=page, headers=headers)


def read(service: Odd, file: Path, path: str = "/v2/usage") -> SealedScan:
    harness = Harness(merchant(), httpx.MockTransport(service))
    harness.limiter = Spare(harness.clock)
    scan = (
        OpenScan.resume(file)
        if file.exists()
        else OpenScan.create(file, structs.replace(header(), path=path))
    )
    return harness.run(lambda client: read_scan(client, scan, 600, lambda *_seen: None))


def drop(*names: str) -> Change:
    return lambda page: [page["pagination"].pop(name) for name in names]


def short(page: dict[str, Any]) -> bool:
    return not page["pagination"]["has_more"]


ODD: dict[str, Change] = {
    "no limit": drop("limit"),
    "no has_more": drop("has_more"),
    "neither": drop("limit", "has_more", "next_offset", "offset"),
    "no pagination on the last page": lambda page: short(page) and page.pop("pagination"),
    "null pagination on the last page": lambda page: short(page) and page.update(pagination=None),
    "limit is the number of rows": lambda page: page["pagination"].update(limit=len(page["data"])),
    "all as text": lambda page: page.update(
        pagination={name: json.dumps(value) for name, value in page["pagination"].items()}
    ),
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
@pytest.mark.parametrize("rows", [1, 10, 65])
def test_an_odd_envelope_is_read_to_the_end(change: Change, rows: int, tmp_path: Path) -> None:
    def changed(page: dict[str, Any]) -> None:
        before = page["pagination"].copy()
        change(page)
        said = page.get("pagination") or {}
        if len(page["data"]) == LIMIT and not said.keys() & {"limit", "has_more"}:
            page["pagination"] = before  # else nothing tells that a full page is a page of a list

    service = Odd(rows, changed)
    scan = read(service, tmp_path / "scan")
    assert scan.completeness.complete, scan.completeness.reason
    assert len(keys(scan)) == rows
    assert service.requests <= 9 + 2 * (rows / LIMIT)


@pytest.mark.parametrize("rows", [3, 25])
def test_a_count_of_the_service_that_is_higher_denies_the_proof(rows: int, tmp_path: Path) -> None:
    """Only invoices say it; beside `data`, or in `pagination`. A wrong count once is nothing."""

    def said(
        total: int, *places: str, path: str = "/v2/invoices", requests: int = 999
    ) -> SealedScan:
        def change(page: dict[str, Any]) -> None:
            about = page["pagination"] if places else page
            about["total"] = total if service.requests <= requests else rows

        service = Odd(rows, change)
        return read(service, tmp_path / f"{next(names)}.jsonl.zst.open", path)

    names = count()
    missing = said(rows + 10)
    assert not missing.completeness.complete
    assert f"the service counts {rows + 10} rows, and shows {rows}" in missing.completeness.reason
    assert missing.completeness.not_seen is None  # it said "0 rows were not seen"
    assert not said(rows + 1, "pagination").completeness.complete
    for scan in (said(rows), said(0), said(rows + 10, path="/v2/usage"), said(99, requests=1)):
        assert (scan.completeness.complete, scan.completeness.rows) == (True, rows)


@pytest.mark.parametrize("rows", [0, 3, 25])
def test_an_answer_that_says_that_it_lacks_rows_denies_the_proof(rows: int, tmp_path: Path) -> None:
    """Beside `data`, or in `pagination`. Said of one reading, the next one may prove the list."""

    def said(member: str, value: object, *, at: int = 0, requests: int = 999) -> SealedScan:
        def change(page: dict[str, Any]) -> None:
            is_one = page["pagination"]["offset"] >= at and service.requests <= requests
            place = page["pagination"] if next(names) % 2 else page
            place.update({member: value} if is_one else {})

        service = Odd(rows, change)
        return read(service, tmp_path / f"{next(names)}.jsonl.zst.open")

    names = count()
    for member in ("partial", "incomplete"):
        proof = said(member, True).completeness
        assert not proof.complete
        assert f"the service says `{member}` of its own answer at offset" in proof.reason
        assert proof.rows == rows
    assert not said("truncated", True, at=max(0, rows - LIMIT)).completeness.complete
    names = count(1000, 2)  # beside `data` only
    failures = {"error": "Timeout", "errors": [{"code": 7}], "success": False, "status": "Error"}
    for member, value in failures.items():
        proof = said(member, value).completeness
        assert not proof.complete
        assert f"the service says `{member}` of its own answer at offset" in proof.reason
    for member, value in {"error": None, "errors": [], "success": True, "status": "ok"}.items():
        assert said(member, value).completeness.complete
    others = [said("partial", value) for value in (False, None, "true", 1, {"partial": True})]
    for scan in (*others, said("complete", True), said("partial", True, requests=1)):
        assert (scan.completeness.complete, scan.completeness.rows) == (True, rows)


def test_truncated_may_only_say_that_more_pages_follow(tmp_path: Path) -> None:
    def change(page: dict[str, Any]) -> None:
        page["truncated"] = page["pagination"]["has_more"]

    assert read(Odd(65, change), tmp_path / "scan").completeness.complete


def test_a_short_page_in_the_middle_that_says_nothing_is_not_the_end(tmp_path: Path) -> None:
    def cut(page: dict[str, Any]) -> None:
        if page["data"] and page["data"][0]["usageId"] == "u7":
            page["data"] = page["data"][:6]
            del page["pagination"]

    scan = read(Odd(65, cut), tmp_path / "scan")
    assert len(keys(scan)) == 65


@pytest.mark.parametrize("status", [400, 404, 416, 422, 500])
def test_refused_deep_offsets_make_a_partial_list_that_names_the_cap(
    status: int, tmp_path: Path
) -> None:
    service = Odd(65)
    service.refused, service.status = range(40, 999), status
    scan = read(service, tmp_path / "scan")
    assert not scan.completeness.complete
    assert scan.completeness.reason.startswith(
        f'the service refuses every offset from 40 on (status {status}: "offset must be < 40"), '
        "although it says that more rows follow."
    )
    assert len(keys(scan)) >= 40
    assert scan.completeness.requests == service.requests
    assert SealedScan.open(scan.path).completeness == scan.completeness


@pytest.mark.parametrize("clamped", [0, 40, 55])
@pytest.mark.parametrize("says_offset", [True, False])
def test_clamped_offsets_make_a_partial_list_that_names_the_offset(
    clamped: int, tmp_path: Path, *, says_offset: bool
) -> None:
    """It cost 25 times the requests of the list, each night, and the reason said nothing of it."""

    def change(page: dict[str, Any]) -> None:
        if not says_offset:
            page["pagination"].pop("offset")
        page["pagination"]["has_more"] = True

    service = Odd(65, change)
    service.clamped = clamped
    scan = read(service, tmp_path / "scan")
    proof = scan.completeness
    assert not proof.complete
    (offset,) = re.findall(r"shows the same 10 rows at every offset from (\d+) on\.", proof.reason)
    assert clamped <= int(offset) <= clamped + LIMIT
    assert "Another sync ends there, too" in proof.reason
    assert len(keys(scan)) == clamped + LIMIT
    assert service.requests <= 20
    assert SealedScan.open(scan.path).completeness == proof


def test_a_list_that_grows_by_a_page_at_each_request_is_not_clamped(tmp_path: Path) -> None:
    """A page may show the rows of the one before again, but no page far behind it does."""
    service = Odd(0)
    service.rows = 65

    def grow(page: dict[str, Any]) -> None:
        first = page["pagination"]["offset"] - 7 * min(service.requests, 8)
        rows = range(first, max(first, min(first + LIMIT, 65)))
        page["data"] = [{"usageId": f"u{row}"} for row in rows]
        page["pagination"]["has_more"] = first + LIMIT < 65

    service.change = grow
    proof = read(service, tmp_path / "scan").completeness
    assert "the same" not in proof.reason
    assert proof.complete, proof.reason


@pytest.mark.parametrize("status", [404, 416, 400])
@pytest.mark.parametrize("rows", [20, 65])
@pytest.mark.parametrize("moving", [False, True])
def test_a_refusal_behind_the_end_is_the_end(
    status: int, rows: int, tmp_path: Path, *, moving: bool
) -> None:
    service = Odd(rows)
    service.refused, service.status, service.moving = range(rows, 999), status, moving
    scan = read(service, tmp_path / "scan")
    assert scan.completeness.complete, scan.completeness.reason
    assert sorted(keys(scan)) == sorted(f"u{key}" for key in range(rows))
    assert scan.completeness.requests == service.requests
    refused = [each.error is not None for each in scan.exchanges() if each.purpose == "behind"]
    assert refused.count(True) == refused.count(False)  # not requested ahead, so only once


@pytest.mark.parametrize("refused", [range(1), range(999), range(14, 22)])
@pytest.mark.parametrize("status", [400, 500])
def test_other_pages_that_fail_end_the_scan_as_before(
    refused: range, status: int, tmp_path: Path
) -> None:
    service = Odd(65)
    service.refused, service.status = refused, status
    with pytest.raises(ServiceError, match=f"with status {status}") as raised:
        read(service, tmp_path / "scan")
    where = "at offset 14 failed; 17 rows of it were read before. The list is not complete"
    assert (where in str(raised.value)) == (refused == range(14, 22))
    assert ("report the offset" in raised.value.remedy) == (refused == range(14, 22))
    service.refused = range(0)
    scan = read(service, tmp_path / "scan")  # resumes
    assert scan.completeness.complete
    assert len(keys(scan)) == 65


@pytest.mark.parametrize("status", [401, 403])
def test_credentials_that_end_while_a_list_is_read_are_no_fault_of_a_page(
    status: int, tmp_path: Path
) -> None:
    """It was said to report the offset to the service if it fails there again."""
    service = Odd(65)
    service.refused, service.status = range(14, 999), status
    with pytest.raises(ServiceError, match=r"17 rows of acme/usage were read before\.") as raised:
        read(service, tmp_path / "scan")
    assert "offset 14" not in str(raised.value)
    assert raised.value.remedy.endswith("Then run `partner-sync sync`, which resumes.")


@pytest.mark.parametrize("status", [400, 422])
def test_offsets_that_must_be_multiples_of_a_page_are_no_cap(status: int, tmp_path: Path) -> None:
    """It was said that the service refuses every offset from 1 on, though it answers 10."""
    service = Odd(65)
    service.refused, service.status = set(range(99)) - set(range(0, 99, LIMIT)), status
    with pytest.raises(ServiceError, match="at offset 7 failed") as raised:
        read(service, tmp_path / "scan")
    assert "offset must be" in str(raised.value)


def test_pages_of_a_cache_count_from_when_they_were_made(tmp_path: Path) -> None:
    scan = read(Odd(65, age=3), tmp_path / "scan")
    proof = scan.completeness
    assert proof.complete
    assert proof.cached_seconds == 3
    assert "A cache answered with pages up to 3 s old." in proof.sentence("usage")
    assert f"throughout {proof.started_at.replace(second=57):%S}" not in proof.sentence("usage")


@pytest.mark.parametrize("aged", [range(1), range(999)])
def test_a_cache_proves_nothing_by_counting(aged: range, tmp_path: Path) -> None:
    service = Odd(65, age=3)
    service.aged, service.moving = aged, True
    proof = read(service, tmp_path / "scan").completeness
    assert not proof.complete
    assert "a cache answered" in proof.reason

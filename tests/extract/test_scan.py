"""The driver: pages requested ahead, failures, resumption and the end of the time."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from pipelines.archive.lines import ScanHeader
from pipelines.archive.records import join_digests
from pipelines.archive.scan_file import OpenScan, SealedScan
from pipelines.core.errors import ServiceError
from pipelines.core.proof import ListTraits
from pipelines.extract.pages import ALGORITHM_VERSION
from pipelines.extract.scan import read_scan
from pipelines.rate_limit.limiter import Slot
from tests.archive.scans import HEADER, decompressed
from tests.http.support import Harness, Unlimited, merchant

LIMIT, ROWS = 10, 65


@dataclass
class Service:
    """A list of `ROWS` rows; `shuffled`: in another order at each request. Fails from a request on.

    Requests are named r1, r2, and so on. `slow_guesses`: one behind the end, while another one is
    in flight, is answered after all others.
    """

    shuffled: bool = False
    fails_from: int = 10**9
    slow_guesses: bool = False
    requests: int = 0
    crowded: set[str] = field(default_factory=set)  # requests that were in flight with another one
    open: list[str] = field(default_factory=list)
    progress: list[int] = field(default_factory=list)  # rows, as they were reported
    chance: Random = field(default_factory=lambda: Random(1))

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        name, offset = f"r{self.requests}", int(request.url.params["offset"])
        self.open.append(name)
        if len(self.open) > 1:
            self.crowded.update(self.open)
        await asyncio.sleep(0.001)
        before = 0 if self.slow_guesses and offset >= ROWS and len(self.open) > 1 else self.requests
        while before != self.requests:  # until no other request has come for a while
            before = self.requests
            await asyncio.sleep(0.05)
        self.open.remove(name)
        if self.requests >= self.fails_from:
            return httpx.Response(500, json={"status": 500, "title": "Down"})
        return httpx.Response(200, content=self._page(offset), headers={"x-request-id": name})

    def _page(self, offset: int) -> bytes:
        chance = self.chance.random if self.shuffled else int
        keys = sorted(range(ROWS), key=lambda key: (key // 7, chance()))
        rows = [{"usageId": f"u{key}", "amount": key} for key in keys[offset : offset + LIMIT]]
        more = offset + LIMIT < ROWS
        pagination = {"limit": LIMIT, "offset": offset, "has_more": more, "next_offset": None}
        return json.dumps({"data": rows, "pagination": pagination}).encode()


class Spare(Unlimited):
    """A limiter that lets every request through at once and always has slots to spare."""

    @asynccontextmanager
    async def hold(self, slot: Slot) -> AsyncIterator[None]:
        self.slots.append(slot)
        yield

    def spare(self) -> bool:
        return True


def header() -> ScanHeader:
    return replace(HEADER, traits=ListTraits(), page_size=LIMIT, algorithm=ALGORITHM_VERSION)


def read(service: Service, scan: OpenScan, max_seconds: float = 600.0) -> SealedScan:
    def note(rows: int, _requests: int, expected: int | None) -> None:
        service.progress.append(rows)
        assert expected is None

    harness = Harness(merchant(), httpx.MockTransport(service))
    harness.limiter = Spare(harness.clock)
    return harness.run(lambda client: read_scan(client, scan, max_seconds, note))


def keys(scan: SealedScan) -> list[str]:
    return [
        json.loads(page.records()[row])["usageId"]
        for page in scan.pages()
        for first, end in scan.completeness.used[page.page]
        for row in range(first, end)
    ]


@pytest.mark.parametrize("shuffled", [False, True])
def test_list_is_read_and_sealed(tmp_path: Path, *, shuffled: bool) -> None:
    service = Service(shuffled, slow_guesses=True)
    scan = read(service, OpenScan.create(tmp_path / "scan", header()))
    assert scan.completeness.complete
    assert sorted(keys(scan)) == sorted(f"u{key}" for key in range(ROWS))
    assert scan.completeness.requests == service.requests
    assert service.progress == sorted(service.progress)
    assert (service.progress[0], service.progress[-1]) == (LIMIT, ROWS)
    assert scan.completeness.traits.key == "usageId"
    assert service.crowded
    alone = {each.request_id for each in scan.exchanges() if each.purpose in {"length", "behind"}}
    assert bool(alone) == shuffled
    assert not alone & service.crowded


def test_lines_hold_the_digests_of_their_records_also_of_erased_ones(tmp_path: Path) -> None:
    scan = read(Service(), OpenScan.create(tmp_path / "scan", header()))
    for erased in (0, 1):
        pages = list(SealedScan.open(scan.path).exchanges())
        assert [each.joined for each in pages] == [join_digests(each.records()) for each in pages]
        assert len({pages[0].joined[at : at + 8] for at in range(0, 8 * LIMIT, 8)}) == LIMIT
        assert pages[0].records().count(b"null") == erased
        if not erased:
            scan.erase(lambda raw: b'"u3"' in raw)


class NoNumber(Service):
    """One amount is no JSON."""

    def _page(self, offset: int) -> bytes:
        return super()._page(offset).replace(b'"amount": 3}', b'"amount": NaN}')


def test_a_record_that_is_no_json_spoils_no_line_of_the_scan_file(tmp_path: Path) -> None:
    scan = read(NoNumber(), OpenScan.create(tmp_path / "scan", header()))
    pages = list(SealedScan.open(scan.path).pages())
    assert pages[0].records()[3] == b'{"usageId": "u3", "amount": NaN}'
    lines = decompressed(scan.path).splitlines()
    assert [msgspec.json.decode(line)["line"] for line in lines][-1] == "seal"


@pytest.mark.parametrize("shuffled", [False, True])
def test_read_that_fails_at_any_request_is_resumed(tmp_path: Path, *, shuffled: bool) -> None:
    for fails_from in count(1, 3):
        path, service = tmp_path / f"scan{fails_from}", Service(shuffled, fails_from)
        try:
            scan = read(service, OpenScan.create(path, header()))
            break
        except ServiceError:
            resumed = OpenScan.resume(path)
        answered = [exchange for exchange in resumed.exchanges() if exchange.body is not None]
        service.fails_from = 10**9
        scan = read(service, resumed)
        asks = [exchange.ask for exchange in scan.exchanges() if exchange.ask is not None]
        assert asks == list(range(1, len(asks) + 1))
        assert len(answered) < fails_from
        assert scan.completeness.complete
        assert sorted(keys(scan)) == sorted(f"u{key}" for key in range(ROWS))
    assert fails_from > 3


def test_time_that_is_up_makes_a_partial_scan_with_its_rows(tmp_path: Path) -> None:
    scan = read(Service(), OpenScan.create(tmp_path / "scan", header()), max_seconds=0.0)
    assert not scan.completeness.complete
    assert [exchange.purpose for exchange in scan.exchanges()] == ["stop"]
    assert scan.completeness.requests == 0
    reason = "it was not proven within 0 minutes (sync_max_minutes). 0 distinct rows seen"
    assert scan.completeness.reason == reason  # it may not have changed at all

"""Finding the interface description: somewhere under `/docs/`, at a path that nobody documents.

The path that is set, else what the HTML of `/docs/` leads to, else `/docs/openapi.json`. Nothing
under `/docs/` is rate limited (Limits, rule 2), so no slot is taken, and nothing is signed. What is
absent or broken is no failure: the bounds of the document apply then, and it is said.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field

import httpx

from pipelines.api import description, links
from pipelines.api.body import MEBIBYTE
from pipelines.api.client import Client
from pipelines.api.description import Description
from pipelines.api.origin import same_origin
from pipelines.errors import ContractBroken, PartnerSyncError

DOCS, USUAL = "/docs/", "/docs/openapi.json"
PAGE_CAP, CAP = MEBIBYTE, 8 * MEBIBYTE  # bytes of a page of HTML, of a description
REQUESTS, GUESSES = 6, 3  # in all; addresses that a page names and we try
SECONDS = 20.0  # for all of it: a night does not wait for docs


@dataclass(frozen=True)
class Found:
    """What was found; where nothing was, `description` is None and `words` say why."""

    description: Description | None
    body: bytes = field(repr=False)
    words: str


async def find(client: Client, path: str | None) -> Found:
    """Look for the description of a client's service; `path` is the setting."""
    search = _Search(client)
    try:
        async with asyncio.timeout(SECONDS):
            return await search.find(path)
    except TimeoutError:
        search.reasons.append(f"no answer in {SECONDS:.0f} s")
    return _nothing(search.reasons)


def _nothing(reasons: Sequence[str]) -> Found:
    why = "; ".join(dict.fromkeys(reasons))
    return Found(None, b"", f"no interface description ({why}): the bounds of the document apply")


class _Search:
    """One search: a handful of requests, and why each of them did not help."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._left = REQUESTS
        self.reasons: list[str] = []

    async def find(self, path: str | None) -> Found:
        """Return the first description among the places where one may be."""
        tried: set[str] = set()
        async for address in self._places(path):
            if address in tried:
                continue
            tried.add(address)
            try:
                url, body = await self._get(address, CAP)
                found = description.read(body, self._client.address.path)
            except (PartnerSyncError, httpx.InvalidURL) as error:
                self.reasons.append(f"{address}: {error}")
                continue
            return Found(found, body, f"interface description: {url.path}")
        return _nothing(self.reasons)

    async def _places(self, path: str | None) -> AsyncIterator[str]:
        if path is not None:
            yield path
            return
        for address in await self._linked():
            yield address
        yield str(self._absolute(USUAL))

    async def _linked(self) -> list[str]:
        """Return what the page of docs leads to, on this service only."""
        try:
            url, body = await self._get(DOCS, PAGE_CAP)
            if body.lstrip()[:1] == b"{":
                return [str(url)]  # the description itself
            text = body.decode(errors="replace")
            addresses = list(self._own(url, links.found(text)))
            if not addresses and (scripts := list(self._own(url, links.scripts(text)))):
                url, body = await self._get(scripts[0], PAGE_CAP)
                addresses = list(self._own(url, links.found(body.decode(errors="replace"))))
        except PartnerSyncError as error:
            self.reasons.append(f"{DOCS}: {error}")
            return []
        return addresses[:GUESSES]

    def _absolute(self, path: str) -> httpx.URL:
        base = self._client.address
        return base.copy_with(path=base.path.rstrip("/") + path)

    def _own(self, page: httpx.URL, addresses: Sequence[str]) -> Iterator[str]:
        """Yield the addresses that are on this service; nobody else is asked."""
        for address in addresses:
            try:
                url = page.join(address).copy_with(fragment=None)
            except httpx.InvalidURL:
                continue
            if same_origin(url, self._client.address):
                yield str(url)

    async def _get(self, address: str, cap: int) -> tuple[httpx.URL, bytes]:
        """Return a body and where it was; follow one redirect, to this service only."""
        for _hop in range(2):
            self._left -= 1
            if self._left < 0:
                raise ContractBroken(f"not asked: {REQUESTS} requests are enough")
            response, body = await self._client.unsigned(address, cap)
            if not response.has_redirect_location:
                break
            target = list(self._own(response.url, [response.headers["location"]]))
            if not target:
                raise ContractBroken("redirects to another host")
            address = target[0]
        if response.status_code != httpx.codes.OK:
            raise ContractBroken(str(response.status_code))
        if len(body) > cap:
            raise ContractBroken(f"larger than {cap // MEBIBYTE} MiB")
        return response.url, body

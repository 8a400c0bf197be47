"""How fast the sandbox serves, so that it is never what another benchmark measures."""

import time

import httpx

from benchmarks.machine import table
from benchmarks.syncing import served

PAGES = 400


def measure() -> str:
    """Read pages of 500 usage rows that nobody read before; return a table."""
    with served("--usage=1000000", "--billing=100000", "--rate=0") as service:
        environment = service.environment
        credentials = {
            "client_id": environment["PARTNER_SYNC_CLIENT_ID"],
            "client_secret": environment["PARTNER_SYNC_CLIENT_SECRET"],
            "audience": environment["PARTNER_SYNC_AUDIENCE"],
            "grant_type": "client_credentials",
        }
        with httpx.Client(base_url=service.url) as http:
            token = http.post("/oauth/token", json=credentials).json()["access_token"]
            headers = {"Authorization": f"Bearer {token}"}
            begun = time.monotonic()
            size = 0
            for page in range(PAGES):
                query = {"limit": 500, "offset": 500 * page}
                size += len(http.get("/v2/usage", params=query, headers=headers).content)
            took = time.monotonic() - begun
    row = [PAGES, f"{PAGES / took:.0f}", f"{size / 500 / PAGES:.0f}"]
    return table(["pages of 500 usage rows", "pages a second", "bytes a row"], [row])

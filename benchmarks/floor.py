"""The least that a sync could cost: pages downloaded, and DuckDB's own reader, which is inexact.

`python -m benchmarks.floor FOLDER` is the process whose time is measured. It proves nothing, keeps
no history and reads amounts as doubles. Not here: the sync that it is compared with (size).
"""

import os
import sys
from pathlib import Path

import duckdb
import httpx

from pipelines.settings import PREFIX

LIMITS = {"partners": 100, "usage": 500, "billing": 100}


def main(folder: Path) -> None:
    """Download every list page by page, load it with read_json, one table each."""
    url, given = os.environ[f"{PREFIX}BASE_URL"], os.environ
    with httpx.Client(base_url=url) as client, duckdb.connect(folder / "floor.duckdb") as database:
        answer = client.post(
            f"{given[f'{PREFIX}AUTH_URL']}/oauth/token",
            json={
                "client_id": given[f"{PREFIX}CLIENT_ID"],
                "client_secret": given[f"{PREFIX}CLIENT_SECRET"],
                "audience": given[f"{PREFIX}AUDIENCE"],
                "grant_type": "client_credentials",
            },
        ).raise_for_status()
        client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
        for name, limit in LIMITS.items():
            _download(client, folder / name, name, limit)
            database.execute(
                f"CREATE TABLE {name} AS SELECT unnest(record, recursive := true) FROM "
                f"(SELECT unnest(data) AS record FROM read_json('{folder / name}/*.json'))"
            )


def _download(client: httpx.Client, folder: Path, name: str, limit: int) -> None:
    folder.mkdir()
    offset: int | None = 0
    while offset is not None:
        query = {"limit": limit, "offset": offset}
        answer = client.get(f"/v2/{name}", params=query)
        body = answer.raise_for_status().content
        (folder / f"{offset:09}.json").write_bytes(body)
        tail = body[body.rindex(b'"pagination"') :]
        offset = offset + limit if b'"has_more":true' in tail.replace(b" ", b"") else None


if __name__ == "__main__":
    main(Path(sys.argv[1]))

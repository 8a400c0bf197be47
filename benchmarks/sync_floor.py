"""The least that a sync can cost: `python -m benchmarks.sync_floor URL TOKEN FOLDER`.

Downloads the pages of the lists one after the other, then has DuckDB read them into tables. DuckDB
is told the types, and numbers become floating point, which partner-sync never does.
"""

import sys
from pathlib import Path

import duckdb
import httpx

LIMITS = {"partners": 100, "usage": 500, "billing": 100}  # records per page
TYPES = {
    "partners": '"partnerId" VARCHAR, name VARCHAR, "externalId" VARCHAR',
    "usage": """
        "usageId" VARCHAR, "partnerId" VARCHAR, "organizationId" VARCHAR, "planId" VARCHAR,
        metric VARCHAR, quantity BIGINT, "unitPrice" DOUBLE, amount DOUBLE, currency VARCHAR,
        period STRUCT("start" TIMESTAMPTZ, "end" TIMESTAMPTZ), "recordedAt" TIMESTAMPTZ,
        "updatedAt" TIMESTAMPTZ, sequence BIGINT, reference VARCHAR,
        events STRUCT(kind VARCHAR, "at" TIMESTAMPTZ, units BIGINT, fee DOUBLE)[],
        note VARCHAR, revision BIGINT
    """,
    "billing": """
        "billingId" VARCHAR, "partnerId" VARCHAR, "invoiceNumber" VARCHAR,
        period STRUCT("start" DATE, "end" DATE), currency VARCHAR, "issuedAt" TIMESTAMPTZ,
        "dueAt" DATE, subtotal DOUBLE, tax DOUBLE, total DOUBLE, status VARCHAR,
        lines STRUCT(
            "usageId" VARCHAR, quantity BIGINT, "unitPrice" DOUBLE, amount DOUBLE,
            description VARCHAR
        )[],
        credit STRUCT(reason VARCHAR, amount DOUBLE, "appliesTo" VARCHAR),
        revision BIGINT, "updatedAt" TIMESTAMPTZ
    """,
}
CREATE_TABLE = """
CREATE TABLE {name} AS
SELECT unnest(pages.data, recursive := false, max_depth := 2)
FROM read_json(
    '{file}',
    format = 'newline_delimited',
    maximum_object_size = 67108864,
    columns = {{'data': 'STRUCT({types})[]'}}
) AS pages
"""


def _download(http: httpx.Client, name: str, file: Path) -> None:
    """Write the pages of a list into a file, one on each line."""
    offset: int | None = 0
    with file.open("wb") as target:
        while offset is not None:
            answer = http.get(f"/v2/{name}", params={"limit": LIMITS[name], "offset": offset})
            target.write(answer.raise_for_status().content + b"\n")
            pagination = answer.content[answer.content.rindex(b'"pagination"') :]
            offset += LIMITS[name]
            offset = offset if b'"has_more": true' in pagination else None


def main(url: str, token: str, folder: Path) -> None:
    """Download all lists, then load them."""
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, trust_env=False) as http:
        for name in LIMITS:
            _download(http, name, folder / f"{name}.jsonl")
    with duckdb.connect(folder / "floor.duckdb", config={"threads": 1}) as db:
        for name, types in TYPES.items():
            file = folder / f"{name}.jsonl"
            db.execute(CREATE_TABLE.format(name=name, file=file, types=types))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))

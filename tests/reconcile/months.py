"""A home with usage of September, October and November, and how a month of it is signed off."""

import hashlib
import json
from datetime import date
from pathlib import Path
from typing import Any

from pipelines.app.nightly import build_with_books
from pipelines.finance.close import close_month
from pipelines.finance.reconcile.close_copy import MANIFEST
from pipelines.finance.signing import Signing
from pipelines.metadata.tables import Close
from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used
from tests.versions.homes import Stores, goes_on_from

Signed = tuple[date, str, str, Signing]
SEPTEMBER, OCTOBER = date(2026, 9, 1), date(2026, 10, 1)
# October with its grace ends after the partners were read, and before usage was.
TERMS = f"grace_days = 2\n{MAPPING}"
ACCOUNTS = """
[accounts]
side = "payable"
accrued = "2190"
result = "5100"
correction = "5190"
rounding = "5900"
"""
USAGE = [
    used("u"),
    used("w", "7.00", currency="USD"),
    used("late", "1.00", day="2026-10-05"),
    used("now", "1.00", day="2026-11-01"),
]
BILLS = [bill("b", line("u", "5.01"))]
POSTED = """
SELECT side, id, currency, amount_before::VARCHAR, amount_now::VARCHAR, difference::VARCHAR,
    strftime(posted_to, '%m')
FROM finance.corrections WHERE partner = 'first Ltd' ORDER BY seen_at, side DESC, id
"""
SERVICE = {  # whose lists are expected
    "surface": "partner",
    "base_url": "http://127.0.0.1",
    "auth_url": "http://127.0.0.1",
    "audience": "a",
    "client_id": "c",
    "secret": "ACME_SECRET",
}


def signing(month: date = SEPTEMBER, preparer: str = "ann", reviewer: str = "bob") -> Signed:
    return month, preparer, reviewer, Signing("as agreed")


def close(stores: Stores, month: date = SEPTEMBER) -> None:
    close_month(stores, *signing(month))
    build_with_books(stores)


def restate(stores: Stores, u: str, w: str, **lists: Any) -> None:
    """Publish other amounts of the two records of September."""
    records = [{**USAGE[0], "amount": u}, {**USAGE[1], "amount": w}, *USAGE[2:]]
    publish(stores, mapping=TERMS, usage=records, **lists)


def publish_months(stores: Stores) -> None:
    stores.configure(**SERVICE)
    publish(stores, mapping=TERMS, partners=partners([FIRST]), usage=USAGE, billing=BILLS)


@goes_on_from(publish_months)
def publish_closed(stores: Stores) -> None:
    close(stores)


def rewrite(folder: Path, stores: Stores, **members: Any) -> None:
    """Let manifest and metadata database name the files of a copy as they are."""
    manifest = folder / MANIFEST
    manifest.chmod(0o600)
    files = {}
    for file in folder.iterdir():
        if file != manifest:
            files[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
    manifest.write_text(json.dumps({**members, "sha256": files}))
    with stores.metadata.transaction() as session:
        for each in session.query(Close):
            each.manifest_sha256 = hashlib.sha256(manifest.read_bytes()).hexdigest()

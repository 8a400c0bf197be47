"""Copies of closed months that earlier releases wrote are read, and compared with today's rows."""

import json
from pathlib import Path

import pytest

from pipelines.finance.close import list_closes
from pipelines.finance.reconcile.close_copy import FORMAT, MANIFEST
from tests.reconcile.months import BILLS, OCTOBER, POSTED, close, publish_closed, restate, rewrite
from tests.versions.homes import Stores, home_of

closed = home_of(publish_closed)
# What came with which format: files, and members of the manifest.
ADDED: dict[int, tuple[set[str], set[str]]] = {
    2: (set(), {"format"}),
    3: (
        {"verify.py", "previous.json"}
        | {f"{name}.parquet" for name in ("opening", "break_rows", "decisions", "matches")}
        | {"report.html", "2026-09.xlsx"},
        {"previous", "sums"},
    ),
}


def write_as(number: int, folder: Path, stores: Stores) -> None:
    """Write a copy as the release did whose copies had this format."""
    content = json.loads((folder / MANIFEST).read_bytes())
    content["format"] = number
    for later, (files, members) in ADDED.items():
        if later > number:
            for name in files:
                (folder / name).unlink()
            for name in members:
                content.pop(name)
    rewrite(folder, stores, **content)


@pytest.mark.long
@pytest.mark.parametrize(
    "number",
    [1, *(pytest.param(each, marks=pytest.mark.slow) for each in range(2, FORMAT)), FORMAT],
)
def test_a_copy_of_every_format_is_compared_and_followed_by_another(
    closed: Stores, number: int
) -> None:
    folder = closed.home.closes / "2026-09" / "001"
    write_as(number, folder, closed)
    restate(closed, "6.00", "7.00")
    (row,) = list_closes(closed)
    assert (row["state"], row["changed_records"], row["problem"]) == ("outdated", 1, None)
    assert closed.rows(POSTED) == [("usage", "u", "EUR", "5.00", "6.00", "1.00", "10")]
    restate(closed, "6.00", "7.00", partners=[{"id": "first", "name": "first Ltd"}], billing=BILLS)
    close(closed, OCTOBER)
    manifest = json.loads((closed.home.closes / "2026-10" / "001" / MANIFEST).read_bytes())
    assert bool(manifest["previous"]) == (number >= 3)
    column = "opening" if number >= 3 else "unposted"
    opening = {each["currency"]: each[column] for each in manifest["sums"]["opening"]}
    assert opening["USD"] == "7.00"  # of the one that has no balances, what is unbilled

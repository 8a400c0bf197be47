"""Ten syncs of books that change, against a model in plain Python: the roll-forward."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pipelines.app.nightly import build_with_books
from pipelines.core.files import write_durably
from tests.effort import EFFORT
from tests.reconcile.books import MAPPING, bill, line, partners, used
from tests.versions.homes import Reading, Record, Stores, read

NAMES = ("a", "b")
KINDS = {"usage": ("rated", "restated"), "billing": ("billed", "adjusted")}  # first, and again
MOVEMENTS = ("rated", "late", "restated", "billed", "adjusted")
PHASES = (Phase.explicit, Phase.generate)  # one example takes seconds: it is not made smaller
ANY = {name: {"max_deleted_share": 1, "allow_empty": True} for name in KINDS}


class Entry(NamedTuple):
    """A record of usage or a bill at one sync. A bill has one line, of the usage with its name."""

    partner: str
    currency: str
    month: str
    cents: int
    late: bool

    @property
    def recorded(self) -> str:
        return "2026-12-05" if self.late else f"{self.month}-05"

    def record(self, stream: str, name: str) -> Record:
        """Return the record of a list that it is."""
        fields = {"partner": self.partner, "currency": self.currency}
        amount, day = f"{self.cents / 100:.2f}", f"{self.month}-05"
        if stream == "billing":
            return bill(name, line(name, amount), month=f"{self.month}-01", **fields)
        return used(name, amount, day=day, recorded=f"{self.recorded}T00:00:00Z", **fields)


Books = Mapping[str, Entry]
ENTRIES = st.builds(
    Entry,
    st.sampled_from(NAMES),
    st.sampled_from(("EUR", "JPY")),
    st.sampled_from(("2026-08", "2026-10", "2026-11", "9999-12")),
    st.integers(-500, 10**9),
    st.booleans(),
)
RECORDS = st.sampled_from("pqrst")
FIRST = {"first": Entry("a", "EUR", "2026-08", 1, late=False)}  # else a list might have no field


@st.composite
def histories(draw: st.DrawFn) -> list[Books]:
    """Return a list at ten syncs; most records stay as they were."""
    found: list[Books] = [FIRST | draw(st.dictionaries(RECORDS, ENTRIES, max_size=5))]
    for _sync in range(9):
        books = dict(found[-1])
        for record in draw(st.lists(RECORDS, max_size=2)):
            books.pop(record, None)
            if draw(st.booleans()):
                books[record] = draw(ENTRIES)
        found.append(books)
    return found


def month_of(text: str) -> date:
    return date.fromisoformat(f"{text[:7]}-01")


def movements(lists: Mapping[str, Sequence[Books]], times: Mapping[str, list[datetime]]) -> Any:
    """Return the movements and the closing of each partner, currency and month, in cents."""
    moved: dict[Any, Counter[str]] = defaultdict(Counter)
    for stream, (first, again) in KINDS.items():
        before, known = dict[str, Entry](), set[str]()
        for books, time in zip(lists[stream], times[stream], strict=True):
            for name in before.keys() | books.keys():
                old, new = before.get(name), books.get(name)
                for entry, sign in ((old, -1), (new, 1)) if old != new else ():
                    if entry is None:
                        continue
                    month, seen, kind = month_of(entry.month), month_of(f"{time}"), again
                    if name not in known:
                        is_late = stream == "usage" and month_of(entry.recorded) > month
                        kind, seen = "late" if is_late else first, month_of(entry.recorded)
                        seen = seen if is_late else month
                        known.add(name)
                    key = entry.partner, entry.currency, max(month, seen)
                    moved[key][kind] += sign * entry.cents
            before = dict(books)
    closing: Counter[Any] = Counter()
    for key in sorted(moved):
        each = moved[key]
        closing[key[:2]] += each["rated"] + each["late"] + each["restated"]
        closing[key[:2]] -= each["billed"] + each["adjusted"]
        each["closing"] = closing[key[:2]]
    return {key: [each[name] for name in (*MOVEMENTS, "closing")] for key, each in moved.items()}


def check(folder: Path, lists: Mapping[str, Sequence[Books]]) -> None:
    stores = Stores.open(folder / "home", streams=ANY)
    write_durably(stores.home.mapping_file, MAPPING.encode())
    read(stores, Reading(partners(NAMES), "partners"))
    times: dict[str, list[datetime]] = {stream: [] for stream in KINDS}
    for states in zip(*lists.values(), strict=True):
        for stream, books in zip(lists, states, strict=True):
            read(
                stores, Reading([each.record(stream, name) for name, each in books.items()], stream)
            )
            times[stream].append(stores.clock.now + timedelta(minutes=1))
    build_with_books(stores)
    assert (
        stores.rows(
            "SELECT rule, reason FROM reconciliation.rules WHERE NOT evaluated AND is_needed"
        )
        == []
    )
    columns = ", ".join(f"100 * {name}" for name in (*MOVEMENTS, "closing"))
    found = stores.rows(
        f"SELECT partner, currency, month, [{columns}] FROM reconciliation.rollforward "
        "WHERE coalesce(difference, 0) = 0"
    )
    assert {row[:3]: row[3] for row in found} == movements(lists, times)
    stores.metadata.close()


@pytest.mark.long
@settings(max_examples=4 * EFFORT, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(histories(), histories())
def test_ten_syncs_roll_forward_as_the_model_says(usage: list[Books], bills: list[Books]) -> None:
    with TemporaryDirectory() as folder:
        check(Path(folder), {"usage": usage, "billing": bills})

"""Ten syncs of books that change, against a model in plain Python: roll-forward and summary."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pipelines.core.files import write_durably
from pipelines.publish.build import build
from tests.effort import EFFORT
from tests.publish.homes import Reading, Record, Stores, read
from tests.reconcile.books import MAPPING, bill, line, partners, used

NAMES = ("a", "b")
CURRENCIES = ("EUR", "JPY")
MONTHS = ("2026-08", "2026-10", "2026-11", "9999-12")
SYNCS = 10
PHASES = (Phase.explicit, Phase.generate)  # one example takes seconds: it is not made smaller
SLOW = list(HealthCheck)
ANY = {name: {"max_deleted_share": 1, "allow_empty": True} for name in ("usage", "billing")}


class Entry(NamedTuple):
    """A record of usage or a bill at one sync. A bill has one line, of the usage with its name."""

    partner: str
    currency: str
    month: str
    cents: int
    late: bool

    @property
    def amount(self) -> Decimal:
        return Decimal(self.cents) / 100


Books = Mapping[str, Entry]
ENTRIES = st.builds(
    Entry,
    st.sampled_from(NAMES),
    st.sampled_from(CURRENCIES),
    st.sampled_from(MONTHS),
    st.integers(-500, 10**9),
    st.booleans(),
)
BOOKS = st.dictionaries(st.sampled_from("pqrst"), ENTRIES, max_size=5)

FIRST = {"first": Entry("a", "EUR", "2026-08", 1, late=False)}  # else a list might have no field


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Books, Books]]:
    """Return the usage and the bills of ten syncs; most records stay as they were."""
    found: list[tuple[Books, Books]] = [(FIRST | draw(BOOKS), FIRST | draw(BOOKS))]
    for _sync in range(SYNCS - 1):
        usage, bills = (dict(each) for each in found[-1])
        for books in (usage, bills):
            for record in draw(st.lists(st.sampled_from("pqrst"), max_size=2)):
                books.pop(record, None)
                if draw(st.booleans()):
                    books[record] = draw(ENTRIES)
        found.append((usage, bills))
    return found


def recorded(entry: Entry) -> str:
    return "2026-12-05" if entry.late else f"{entry.month}-05"


def usage_record(name: str, entry: Entry) -> Record:
    return used(
        name,
        str(entry.amount),
        partner=entry.partner,
        currency=entry.currency,
        day=f"{entry.month}-05",
        recorded=f"{recorded(entry)}T00:00:00Z",
    )


def bill_record(name: str, entry: Entry) -> Record:
    lines = line(name, str(entry.amount))
    month = f"{entry.month}-01"
    return bill(name, lines, partner=entry.partner, currency=entry.currency, month=month)


Versions = list[tuple[Entry, datetime, datetime | None]]


def versions(states: Sequence[Books], times: Sequence[datetime]) -> Iterator[Versions]:
    """Yield the versions of each record: its values, and from and to when they held."""
    for name in sorted({name for state in states for name in state}):
        found: Versions = []
        for state, time in zip(states, times, strict=True):
            now, last = state.get(name), found[-1] if found else None
            if last and last[2] is None and last[0] != now:
                found[-1] = (last[0], last[1], time)
            if now and (last is None or last[0] != now or found[-1][2] is not None):
                found.append((now, time, None))
        yield found


def rollforward(history: Sequence[tuple[Books, Books]], times: Any) -> dict[Any, dict[str, Any]]:
    """Return the movements of each partner, currency and month, and the closing."""
    moves: dict[Any, Counter[str]] = defaultdict(Counter)
    for side, (first, again) in enumerate((ROLLED[:2], ROLLED[2:4])):
        for found in versions([each[side] for each in history], times[side]):
            for number, (entry, begin, end) in enumerate(found):
                month = date.fromisoformat(f"{entry.month}-01")
                group = entry.partner, entry.currency
                seen = date.fromisoformat(recorded(entry)).replace(day=1)
                if number:
                    moves[*group, max(month, begin.date().replace(day=1))][again] += entry.cents
                elif side == 0 and seen > month:
                    moves[*group, seen]["late"] += entry.cents
                else:
                    moves[*group, month][first] += entry.cents
                if end:
                    moves[*group, max(month, end.date().replace(day=1))][again] -= entry.cents
    closing: Counter[Any] = Counter()
    result = {}
    for partner, currency, month in sorted(moves):
        moved = moves[partner, currency, month]
        usage = moved["rated"] + moved["late"] + moved["restated"]
        closing[partner, currency] += usage - moved["billed"] - moved["adjusted"]
        result[partner, currency, month] = {
            **{name: Decimal(moved[name]) / 100 for name in ROLLED},
            "closing": Decimal(closing[partner, currency]) / 100,
        }
    return result


ROLLED = ("rated", "restated", "billed", "adjusted", "late")
SUMMED = ("used_amount", "billed_amount")


def summary(usage: Books, bills: Books) -> dict[Any, dict[str, Decimal | None]]:
    found: dict[Any, dict[str, Decimal | None]] = {}
    for name, books in zip(SUMMED, (usage, bills), strict=True):
        for entry in books.values():
            month = date.fromisoformat(f"{entry.month}-01")
            row = found.setdefault((entry.partner, entry.currency, month), dict.fromkeys(SUMMED))
            row[name] = (row[name] or Decimal(0)) + entry.amount
    return found


def rows(stores: Stores, table: str, names: Sequence[str]) -> dict[Any, dict[str, Any]]:
    sql = f"SELECT partner, currency, month, {', '.join(names)} FROM reconciliation.{table}"
    return {row[:3]: dict(zip(names, row[3:], strict=True)) for row in stores.rows(sql)}


def check(folder: Path, history: Sequence[tuple[Books, Books]]) -> None:
    stores = Stores.open(folder / "home", streams=ANY)
    write_durably(stores.settings.places.mapping_file, MAPPING.encode())
    read(stores, Reading(partners(NAMES), "partners"))
    times: tuple[list[datetime], list[datetime]] = ([], [])
    for usage, bills in history:
        for side, (stream, books, make) in enumerate(
            (("usage", usage, usage_record), ("billing", bills, bill_record))
        ):
            records = [make(name, entry) for name, entry in books.items()]
            read(stores, Reading(records, stream))
            times[side].append(stores.clock.now + timedelta(minutes=1))
    build(stores)
    assert stores.rows("SELECT rule, reason FROM reconciliation.rules WHERE NOT evaluated") == []
    assert rows(stores, "rollforward", [*ROLLED, "closing"]) == rollforward(history, times)
    sql = "SELECT count(*) FROM reconciliation.rollforward WHERE difference <> 0"
    assert stores.rows(sql) == [(0,)]
    found = rows(stores, "summary WHERE used_rows + bills > 0", SUMMED)  # others have breaks only
    assert found == summary(*history[-1])
    stores.metadata.close()


@pytest.mark.long
@settings(max_examples=4 * EFFORT, phases=PHASES, suppress_health_check=SLOW)
@given(histories())
def test_ten_syncs_roll_forward_as_the_model_says(
    history: list[tuple[Books, Books]],
) -> None:
    with TemporaryDirectory() as folder:
        check(Path(folder), history)

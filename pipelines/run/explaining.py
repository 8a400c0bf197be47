"""A figure walked back: to its rows, to the rule and its arithmetic, to the archived pages.

Each page is opened, its SHA-256 checked, the record taken by its row, and the figure added up once
more from what the service sent. Not here: how a page is opened (raw), what a rule asks
(reconciliation), which rows a figure of a month is of (warehouse.matching).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, localcontext
from typing import Any

import duckdb

from pipelines.errors import ConfigurationError
from pipelines.run import fields
from pipelines.run.explanation import Explanation, Figure, Line, added
from pipelines.run.raw import Opener
from pipelines.run.rereading import Numbers, Rereading, Wanted
from pipelines.run.session import Session
from pipelines.settings import mapping as file_of
from pipelines.settings.mapping import Mapping as Roles
from pipelines.warehouse import conflicts, matching, published
from pipelines.warehouse.database import exists

ALL = "all"  # partners
EXACT = 200  # digits of a sum: the usual 28 would round large ones
BREAK = re.compile(r"[Bb][0-9A-Fa-f]{12}")
MONTH = re.compile(r"(.+)/([0-9]{4})-(0[1-9]|1[0-2])")
LINE = re.compile(r".*#([0-9]+)")
ROWS = """
SELECT side, id, amount, quantity, page, row FROM reconciliation.break_rows
WHERE break_id = ? ORDER BY page, row, side, id
"""
BROKEN = """
SELECT b.*, r.question, r.tolerance, r.means, r.remedy
FROM reconciliation.breaks AS b LEFT JOIN reconciliation.rules AS r USING (rule)
WHERE break_id = $id
"""
# Both sides of a partner's month, as the summary adds them up.
BOTH = """
SELECT 'usage' AS side, id, amount, quantity, page, row FROM used
WHERE connection = $connection AND month = $month AND currency IS NOT DISTINCT FROM $currency
  AND ($every OR partner IS NOT DISTINCT FROM $partner)
UNION ALL
SELECT 'billing', bill, amount, NULL, page, row FROM bills
WHERE connection = $connection AND month = $month AND currency IS NOT DISTINCT FROM $currency
  AND ($every OR partner IS NOT DISTINCT FROM $partner)
ORDER BY page, row, side, id
"""
READ = """
SELECT connection, stream, manifest, rows, sentence, doubt FROM meta.proofs
WHERE in_force AND stream = $stream ORDER BY connection
"""
ONE = """
SELECT connection, partner, partner_name, month, currency, used_rows, used_quantity,
       expected_amount, used_amount, billed_amount, variance AS difference, verdict, not_evaluated
FROM reconciliation.summary
WHERE month = $month AND currency IS NOT DISTINCT FROM coalesce($currency, currency)
  AND (partner = $partner OR lower(partner_name) = lower($partner))
ORDER BY connection, partner, currency
"""
EVERY = """
SELECT connection, NULL AS partner, 'all partners' AS partner_name, month, currency,
       sum(used_rows)::BIGINT AS used_rows, sum(used_quantity) AS used_quantity,
       sum(expected_amount) AS expected_amount, sum(used_amount) AS used_amount,
       sum(billed_amount) AS billed_amount, sum(variance) AS difference, NULL AS verdict,
       string_agg(DISTINCT not_evaluated, '; ' ORDER BY not_evaluated) AS not_evaluated
FROM reconciliation.summary
WHERE month = $month AND currency IS NOT DISTINCT FROM coalesce($currency, currency)
GROUP BY connection, month, currency ORDER BY connection, currency
"""


def explain(
    session: Session, target: str, currency: str | None = None, *, whole: bool = False
) -> list[Explanation]:
    """Explain a break by its id, the figures of PARTNER/2026-09, or the rows of a list.

    `all` is every partner.
    `whole`: a month's figures from every page of both lists too, so that no row is left out.

    Raises ConfigurationError for what is not there, NothingPublished before the first publication.
    """
    given = file_of.load(session.settings.place.config).mapping
    home = session.settings.place
    with localcontext(prec=EXACT), published.opened(home) as source:
        if not exists(source.database, "reconciliation", "breaks"):
            raise ConfigurationError(
                f"{source.file.name} has no reconciliation: publish once more with the setting "
                "reconcile switched on"
            )
        explainer = _Explainer(source.database, given, Opener(session), whole)
        if BREAK.fullmatch(target):
            return [explainer.broken(target[0].upper() + target[1:].lower())]
        if which := MONTH.fullmatch(target):
            month = date(int(which[2]), int(which[3]), 1)
            return explainer.months(which[1], month, currency)
        if found := explainer.lists(target):
            return found
    raise ConfigurationError(
        f"{target!r} is neither a break, such as B0123456789ab, nor a partner and a month, such as "
        "PARTNER/2026-09 (all/2026-09 is every partner), nor a list that was read"
    )


@dataclass(frozen=True)
class _Explainer:
    """One published version, the mapping, and the archive."""

    database: duckdb.DuckDBPyConnection
    given: Roles
    opener: Opener
    whole: bool

    def broken(self, break_id: str) -> Explanation:
        """Explain a break."""
        found = self._rows(BROKEN, {"id": break_id})
        if not found:
            raise ConfigurationError(
                f"there is no break {break_id} in the published version; partner-sync breaks lists "
                "what there is"
            )
        own = found[0]
        lines = self._lines(self.database.execute(ROWS, [break_id]).fetchall())
        about = [own["connection"], own["partner_name"] or own["partner"], own["currency"]]
        month = f"{own['month']:%Y-%m}" if own["month"] else None
        words = [
            f"rule {own['rule']}: {own['question']} Tolerance: {own['tolerance']}.",
            f"{own['cause']}; {own['state']}, found since {own['first_seen']:%Y-%m-%d}",
            f"means: {own['means']}",
            f"to do: {own['remedy']}",
            "difference: billed less used",
        ]
        if own["artefact"]:
            words.append(f"may only seem so: {own['artefact_reason']}")
        return Explanation(
            " · ".join([break_id, *(each for each in (*about, month) if each)]),
            tuple(words if lines else [*words, "the data do not have it any more: no rows"]),
            tuple(lines),
            _sums(own, lines) if lines else (),
        )

    def lists(self, stream: str) -> list[Explanation]:
        """Explain how many rows a list has, and what is proven of them, by connection."""
        return [self._list(own) for own in self._rows(READ, {"stream": stream})]

    def _list(self, own: dict[str, Any]) -> Explanation:
        manifest, count = self._rereading.count(own["manifest"])
        read = f"{len(manifest.pages):,} pages, archive/manifests/{own['manifest']}"
        if manifest.superseded:
            read += f"; {len(manifest.superseded):,} pages before the length check not loaded"
        words = [own["sentence"], read, *([own["doubt"]] if own["doubt"] else [])]
        figures = (Figure("rows", own["rows"], Decimal(count)),)
        return Explanation(f"{own['connection']} · {own['stream']}", tuple(words), (), figures)

    def months(self, partner: str, month: date, currency: str | None) -> list[Explanation]:
        """Explain what a partner, or all, used and was billed in a month, by currency."""
        every = partner == ALL
        wanted = {"month": month, "currency": currency}
        wanted |= {} if every else {"partner": partner}
        if not exists(self.database, "reconciliation", "summary"):
            raise ConfigurationError("the published version has no summary: publish once more")
        found = self._rows(EVERY if every else ONE, wanted)
        if not found:
            which = f"{partner} in {month:%Y-%m}{f' in {currency}' if currency else ''}"
            raise ConfigurationError(
                f"the published summary has no row of {which}: reconciliation.summary lists what "
                "there is"
            )
        matching.prepare(self.database, self.given, self.opener.session.clock.now())
        return [self._month(each, every=every) for each in found]

    def _month(self, own: dict[str, Any], *, every: bool) -> Explanation:
        which = {name: own[name] for name in ("connection", "month", "currency", "partner")}
        rows = self.database.execute(BOTH, which | {"every": every}).fetchall()
        lines = self._lines(rows)
        about = [own["connection"], own["partner_name"] or own["partner"], own["currency"]]
        title = " · ".join([f"{own['month']:%Y-%m}", *(each for each in about if each)])
        usage = [each for each in lines if each.side == "usage"]
        again = {
            "used_rows": Decimal(len([each for each in usage if not each.raw.trouble])),
            "used_quantity": added(each.sent_quantity for each in usage),
            "expected_amount": added(each.expected for each in usage),
            "used_amount": added(each.sent_amount for each in usage),
            "billed_amount": added(each.sent_amount for each in lines if each.side != "usage"),
        }
        figures = _figures(own, again)
        if self.whole:
            figures += _figures(own, self._reread(own, every=every), " of every page")
        return Explanation(title, tuple(self._words(own)), tuple(lines), tuple(figures))

    def _reread(self, own: Mapping[str, Any], *, every: bool) -> Numbers:
        """Return a month's figures from every page of the published readings."""
        query = "SELECT stream, manifest FROM meta.freshness WHERE connection = ?"
        manifests = dict(self.database.execute(query, [own["connection"]]).fetchall())
        wanted = Wanted(own["month"], own["currency"], own["partner"], every)
        apart = {
            each: conflicts.listed(self.database, own["connection"], each) for each in manifests
        }
        return replace(self._rereading, conflicts=apart).figures(wanted, manifests)

    @property
    def _rereading(self) -> Rereading:
        partners = self.given.partners
        key = partners.id or fields.read(self.database, partners.stream).key
        return Rereading(self.opener.session.archive, self.given, key)

    def _words(self, own: Mapping[str, Any]) -> list[str]:
        """Say how the figures of a month are made."""
        used, billed = self.given.usage, self.given.billing
        of = f"{used.stream} whose {used.period} is in the month"
        words = [f"used: the sum of {used.amount} of {of}"] if used.amount else []
        if used.quantity and used.price:
            words.append(f"expected: the sum of {used.quantity} times {used.price}, not rounded")
        if billed.amount:
            of = f"{billed.stream} whose {billed.period} is in it"
            words.append(f"billed: the sum of {billed.amount} of {of}")
        words.append("difference: billed less used")
        said = [(name, own[name]) for name in ("verdict", "not_evaluated") if own[name]]
        return [*words, *(f"{name.replace('_', ' ')}: {each}" for name, each in said)]

    def _lines(self, rows: Iterable[Sequence[Any]]) -> list[Line]:
        """Open the record behind each row."""
        lines = []
        for side, name, amount, quantity, digest, row in rows:
            raw = self.opener.record(digest, row)
            paths, place = self._paths(side, name)
            amount_path, quantity_path, price_path = paths
            sent = None if amount is None else raw.number(amount_path, place)
            count = None if quantity is None else raw.number(quantity_path, place)
            price = raw.number(price_path)
            lines.append(
                Line(
                    side,
                    name,
                    amount,
                    quantity,
                    raw=replace(raw, record=None),  # of a month there may be a million
                    sent_amount=sent,
                    sent_quantity=count,
                    expected=None if count is None or price is None else count * price,
                )
            )
        return lines

    def _paths(self, side: str, name: str | None) -> tuple[Sequence[str | None], int | None]:
        """Return where amount, quantity and price are: of a bill's line, at its place."""
        used, billed = self.given.usage, self.given.billing
        if side == "usage":
            return (used.amount, used.quantity, used.price), None
        line = LINE.fullmatch(name or "")
        if line and billed.line_amount:
            return (billed.line_amount, billed.line_quantity, None), int(line[1])
        return (billed.amount, None, None), None

    def _rows(self, query: str, values: Mapping[str, object]) -> list[dict[str, Any]]:
        found = self.database.sql(query, params=dict(values)).to_arrow_table()
        return list(found.to_pylist())


def _sums(own: dict[str, Any], lines: Sequence[Line]) -> tuple[Figure, ...]:
    """Add up both sides of a break, and billed less used, as every rule does."""
    used = added(each.sent_amount for each in lines if each.side == "usage")
    billed = added(each.sent_amount for each in lines if each.side != "usage")
    nothing = used is None and billed is None
    difference = None if nothing else (billed or Decimal(0)) - (used or Decimal(0))
    again = {"used_amount": used, "billed_amount": billed, "difference": difference}
    return tuple(Figure(name, own[name], each) for name, each in again.items())


def _figures(own: Mapping[str, Any], again: Numbers, which: str = "") -> list[Figure]:
    """Put a month's figures beside the published ones; a side that has no records is 0 there.

    A figure that the summary did not evaluate is left out.
    """
    known = {
        name: Decimal(0) if each is None and own[name] == 0 else each
        for name, each in again.items()
    }
    used, billed = known["used_amount"], known["billed_amount"]
    known["difference"] = None if used is None or billed is None else billed - used
    return [
        Figure(f"{name}{which}", own[name], each)
        for name, each in known.items()
        if own[name] is not None or each is None or not own["not_evaluated"]
    ]

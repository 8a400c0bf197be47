"""Proposes a field for each role of `config/mapping.toml`: by its name and by what rows show.

Keys first, then what refers to them, then money, which needs the currency; in the end what only a
name says. Where two fields are equally good, none is proposed.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import duckdb

from pipelines.config import mapping
from pipelines.config.mapping import PartnerRoles
from pipelines.reconcile.evidence import FEW, ITEM, WIDTH, Evidence, Product, Share
from pipelines.reconcile.roles import NUMBERS, SIDES, Column

SURE, NAMED = 0.9, 0.5  # shares that show a role alone, and together with a name
CLOSE = 0.02  # shares that differ by less are equally good
UNNAMED = 1_000.0  # rank of a name that says nothing
WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
NAMES: Final = {  # usual ones, the likeliest first; a field's name has all words of one
    "id": "usage id, billing id, bill id, invoice id, document id, document no, record id, id",
    "partner": "partner id, partner, reseller, distributor, account",
    "organization": "organization, organisation, org, customer, merchant, tenant, account",
    "period": "period start, service period, period, start, from, month, day, date, timestamp",
    "plan": "plan id, plan, product, sku, tier, item, service",
    "metric": "metric, meter, measure, dimension, unit",
    "quantity": "quantity, qty, volume, consumed, unit, usage, count",
    "price": "unit price, price, rate, unit cost",
    "amount": "total, amount, gross, charge, cost, fee, value",
    "currency": "currency, ccy",
    "recorded": "recorded, booked, logged, ingested, received, reported, created",
    "updated": "updated, modified, changed, revised",
    "issued": "issued, issue, invoice date, bill date, document date, invoiced, billed, created",
    "number": "invoice number, bill number, document number, number, serial, document no",
    "status": "status, state",
    "kind": "kind, document type, bill type, invoice type, type",
    "usage": "usage id, usage, record id, event id",
}
TIMES: Final = (
    *("usage.updated", "usage.recorded", "usage.period"),  # period last: a date may be any of them
    *("billing.updated", "billing.issued", "billing.period"),
)
LABELS: Final = (
    *("usage.organization", "usage.plan", "usage.metric"),
    *("billing.organization", "billing.number", "billing.line_plan"),
)
UNCOUNTED: Final = {
    *("void", "voided", "draft", "cancel", "canceled", "cancelled", "deleted", "pending"),
    *("rejected", "reversed"),
}
OTHERS: Final = {"tax", "vat", "discount", "due", "payable", "expiry"}  # have no role
CREDIT: Final = re.compile("credit|refund", re.IGNORECASE)


@dataclass(frozen=True)
class Proposal:
    """A role, the path of the field proposed for it (None: none is), and why.

    `values` are those of counted_statuses and credit_kinds, which have no path.
    """

    role: str
    path: str | None
    evidence: str
    values: tuple[str, ...] = ()


class Trait(NamedTuple):
    """What a field must show. `needs_name`: it must have a fitting name as well."""

    measure: Callable[[Column], Share]
    meaning: str
    needs_name: bool = False


def propose_roles(db: duckdb.DuckDBPyConnection, partners: PartnerRoles) -> list[Proposal]:
    """Return a proposal for every role, in the order of the mapping.

    `db` is a published version. The roles of partners are documented, or set by a person.
    """
    search = _Search(db)
    search.run(partners)
    return [
        search.proposal(side, f"{side}.{name}")
        for side in SIDES
        for name, _ in getattr(mapping.Mapping(), side)
    ]


class _Search:
    """The roles found so far, with their columns: what is looked for next depends on them."""

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        self._evidence = Evidence(db)
        self._found: dict[str, Column] = {}
        self._reasons: dict[str, str] = {}
        self._values: dict[str, tuple[str, ...]] = {}

    def run(self, partners: PartnerRoles) -> None:
        self._partners(partners)
        codes = Trait(self._evidence.codes, "values are ISO 4217 codes")
        for side in ("usage", "billing"):
            self._key(side)
            self._choose(f"{side}.currency", self._free(side), codes)
            self._refer(f"{side}.partner", self._free(side), "partners.id")
        items = self._free("billing", in_list=True)
        references = [each for each in items if self._evidence.hardly_repeats(each)]
        self._refer("billing.line_usage", references, "usage.id")
        reference = self._found.get("billing.line_usage")
        tables = {reference.table} if reference else {each.table for each in items}
        lines = [each for each in items if {each.table} == tables]
        self._money("usage.", self._free("usage"))
        self._money("billing.line_", lines)
        self._total()
        self._states()
        times = Trait(self._evidence.times, "values are dates, times or months", needs_name=True)
        labels = Trait(self._evidence.labels, "rows have a value", needs_name=True)
        for role in TIMES:
            self._choose(role, self._free(role), times)
        for role in LABELS:
            self._choose(role, lines if ".line_" in role else self._free(role), labels)

    def proposal(self, side: str, role: str) -> Proposal:
        column, values = self._found.get(role), self._values.get(role, ())
        reason = self._reasons.get(role, "No field has a name that fits.")
        if not any(each.stream == side for each in self._evidence.columns):
            reason = f"There are no rows of {side}."
        return Proposal(role, column and column.path, reason, values)

    def _free(self, role: str, *, in_list: bool = False) -> list[Column]:
        """Return the columns of records, or of lists in them, that have no role yet."""
        taken, side = self._found.values(), role.partition(".")[0]
        return [
            each
            for each in self._evidence.columns
            if each.stream == side and (ITEM in each.path) == in_list and each not in taken
        ]

    def _give(self, role: str, column: Column, reason: str) -> None:
        self._found[role] = column
        self._reasons[role] = reason + " The name fits." * (_rank(role, column) < UNNAMED)

    def _choose(self, role: str, columns: Iterable[Column], trait: Trait) -> bool:
        """Give a role to the best field; return whether any is good enough."""
        ranks = {each: _rank(role, each) for each in columns if each not in self._found.values()}
        tried = [each for each in ranks if ranks[each] < UNNAMED or not trait.needs_name]
        shares = {each: trait.measure(each) for each in tried}
        least = {each: SURE if ranks[each] == UNNAMED else NAMED for each in tried}
        good = {each: share for each, share in shares.items() if share.value >= least[each]}
        best = _best(good, lambda each: (good[each].value < SURE, ranks[each]))
        if len(best) == 1:
            self._give(role, best[0], f"{good[best[0]]} {trait.meaning}.")
        elif best:
            self._reasons[role] = _equally_good(best)
        elif shares:
            near = max(shares, key=lambda each: shares[each].value)
            nearest = f" Nearest: {near.path}, {shares[near]} {trait.meaning}."
            is_near = shares[near].part or trait.needs_name
            self._reasons[role] = f"No field qualifies.{nearest if is_near else ''}"
        return bool(best)

    def _partners(self, roles: PartnerRoles) -> None:
        columns = {each.path: each for each in self._free("partners")}
        for name, path in roles:
            role, default = f"partners.{name}", PartnerRoles.model_fields[name].default
            reason = "The service documents it." if path == default else "mapping.toml says so."
            if path in columns:
                self._found[role] = columns[path]
            elif path:
                reason += f" No record has a field {path}."
            self._reasons[role] = reason

    def _key(self, side: str) -> None:
        """Find the primary key of a list, else a field that differs in every row."""
        role, columns, key = f"{side}.id", self._free(side), self._evidence.key(side)
        proven = next((each for each in columns if each.path == key), None)
        if proven:
            self._give(role, proven, "It is the primary key of the list.")
            return
        unique = [each for each in columns if self._evidence.is_unique(each)]
        referring = {each: self._evidence.referring(each) for each in unique}
        if any(share.value >= SURE for share in referring.values()):
            trait = Trait(referring.__getitem__, "values of another list refer to it")
        else:
            trait = Trait(self._evidence.labels, "rows have a value, and all differ")
        self._choose(role, unique, trait)

    def _refer(self, role: str, columns: Iterable[Column], target: str) -> None:
        """Find the field whose values are those of another list's key."""
        aim = self._found.get(target)
        if aim is None:
            self._reasons[role] = f"{target} has no field, so none can refer to it."
            return
        meaning = f"values are in {aim.stream}.{aim.path}"
        self._choose(role, columns, Trait(lambda each: self._evidence.found(each, aim), meaning))

    def _money(self, prefix: str, columns: Sequence[Column]) -> None:
        """Find quantity, price and amount: by what multiplies, else by name."""
        quantity, price, amount = roles = [f"{prefix}{name}" for name in NUMBERS]
        numbers = [*filter(_is_number, columns)]
        currency = self._found.get(f"{prefix.partition('.')[0]}.currency")
        self._multiply(roles, self._evidence.products(numbers, currency))
        for role in (price, amount, quantity):  # unitPrice is a price, no quantity of units
            if role not in self._reasons:
                self._number(role, columns, "no product confirms it")
            if len(numbers) > WIDTH and role in self._reasons:
                self._reasons[role] += f" Of {len(numbers)} numbers, only {WIDTH} were multiplied."

    def _multiply(self, roles: Sequence[str], products: Iterable[Product]) -> None:
        """Give quantity, price and amount to the columns of the product with the best names."""
        good = [each for each in products if each.share.value >= SURE]
        shares = {turned: each.share for each in good for turned in (each, each.turned())}
        best = _best(shares, lambda each: _product_rank(roles, each))
        for at, role in enumerate(roles if best else ()):
            columns = list(dict.fromkeys(each.columns[at] for each in best))
            if len(columns) == 1:
                self._give(role, columns[0], f"{best[0].share} sampled rows are {best[0]}.")
            else:
                self._reasons[role] = _equally_good(columns)

    def _number(self, role: str, columns: Sequence[Column], what: str) -> None:
        """Find a number by its name."""
        trait = Trait(self._evidence.filled, f"rows have a number; {what}", needs_name=True)
        self._choose(role, filter(_is_number, columns), trait)
        texts = [each for each in columns if each.type == "VARCHAR"]
        named = [each.path for each in texts if _rank(role, each) < UNNAMED]
        if role not in self._reasons and named:
            self._reasons[role] = f"{named[0]} holds text, not numbers."

    def _total(self) -> None:
        """Find the number of a bill to which its lines add up, else by name."""
        role, columns = "billing.amount", self._free("billing")
        line, totals = self._found.get("billing.line_amount"), [*filter(_is_number, columns)]
        sums = self._evidence.sums(line, totals) if line and totals else {}
        meaning = "sampled bills are the sum of their lines"
        if not self._choose(role, sums, Trait(sums.__getitem__, meaning)):
            self._reasons.pop(role, None)
            self._number(role, columns, "no lines add up to it")

    def _states(self) -> None:
        """Find status and kind of bills, and which of their values mean bills that count."""
        few = Trait(
            self._evidence.few, f"values are of at most {FEW} different ones", needs_name=True
        )
        for role, of_values, is_meant in (
            ("billing.status", "billing.counted_statuses", _counts),
            ("billing.kind", "billing.credit_kinds", CREDIT.search),
        ):
            self._choose(role, self._free(role), few)
            column = self._found.get(role)
            values = self._evidence.values(column) if column else ()
            self._values[of_values] = tuple(each for each in values if is_meant(each))
            others = ", ".join(each for each in values if not is_meant(each))
            reason = f"Other values: {others or 'none'}." if column else f"{role} has no field."
            self._reasons[of_values] = reason


def _best(shares: Mapping[Any, Share], order: Callable[[Any], Any]) -> list[Any]:
    """Return the first in an order, and of these the ones with the largest share, all if equal."""
    first = [each for each in shares if order(each) == min(map(order, shares))]
    most = max((shares[each].value for each in first), default=0)
    return [each for each in first if most - shares[each].value < CLOSE]


def _equally_good(columns: Iterable[Column]) -> str:
    paths = ", ".join(each.path for each in columns)
    return f"Equally good: {paths}. Choose one in mapping.toml."


def _is_number(column: Column) -> bool:
    return column.is_number and not OTHERS & set(_words(column.path))


def _counts(status: str) -> bool:
    return not UNCOUNTED & set(_words(status))


def _words(name: str) -> list[str]:
    """Return the words of a name, small and without the s of a plural: unitPrices: unit, price."""
    return [re.sub("(?<=[^su])s$", "", each.lower()) for each in WORD.findall(name)]


def _rank(role: str, column: Column) -> float:
    """Return how well a field is named for a role, 0 the best; UNNAMED if it is not."""
    found = set(_words(column.path.rpartition(f"{ITEM}.")[2]))
    usual = NAMES.get(role.partition(".")[2].removeprefix("line_"))
    for place, name in enumerate(usual.split(", ") if usual and not OTHERS & found else ()):
        if found >= set(name.split()) or name.replace(" ", "") in found:
            return place + len(found - set(name.split())) / 100
    return UNNAMED


def _product_rank(roles: Sequence[str], product: Product) -> tuple[float, bool]:
    """Return how well a product is named, 0 the best; whole numbers are rather quantities."""
    quantity, price, _ = product.columns
    names = sum(_rank(role, each) for role, each in zip(roles, product.columns, strict=True))
    return (names, price.scale == 0 < quantity.scale)

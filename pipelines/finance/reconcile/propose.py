"""Here: fields are proposed for the roles of `config/mapping.toml`, by names and by what rows show.

Keys first, then what refers to them, then money, which needs the currency; in the end what only a
name says. Not here: which of several fields is the best (choices), what rows show (evidence,
samples), how well a name fits (names).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

import duckdb

from pipelines.finance import mapping
from pipelines.finance.mapping import PartnerRoles
from pipelines.finance.reconcile.choices import NAMED, SURE, Choices, Proposal, best
from pipelines.finance.reconcile.evidence import SOME, Evidence, Share
from pipelines.finance.reconcile.names import UNNAMED, rank
from pipelines.finance.reconcile.roles import NUMBERS, SIDES, FieldColumn, side_of
from pipelines.finance.reconcile.samples import Samples
from pipelines.finance.reconcile.units import AMOUNTS, find_units

# Numbers of a table that are multiplied: all combinations of three are.
WIDTH: Final = 12
# Roles that are found by name, with the kind of their fields. A date may be any of several times,
# so a period is looked for after the others.
NAMED_ROLES: Final = {
    "billing.status": "few",
    "billing.kind": "few",
    "usage.updated": "times",
    "usage.recorded": "times",
    "usage.period": "times",
    "billing.updated": "times",
    "billing.issued": "times",
    "billing.due": "times",
    "billing.paid": "times",
    "billing.open": "numbers",
    "billing.tax": "numbers",
    "billing.period": "times",
    "usage.organization": "labels",
    "usage.plan": "labels",
    "usage.unit": "words",
    "usage.region": "words",
    "usage.metric": "labels",
    "billing.organization": "labels",
    "billing.number": "labels",
    "billing.line_plan": "labels",
    "billing.line_unit": "labels",
    "billing.line_region": "labels",
    "billing.line_metric": "labels",
}
# Roles whose values are those of the other side.
AGREE: Final = {
    "billing.organization": "usage.organization",
    "billing.line_plan": "usage.plan",
    "billing.line_metric": "usage.metric",
    "billing.line_unit": "usage.unit",
    "billing.line_region": "usage.region",
}
Columns = tuple[FieldColumn, ...]
UNCOUNTED: Final = re.compile(mapping.UNCOUNTED_WORDS, re.IGNORECASE)
CREDIT: Final = re.compile(mapping.CREDIT_WORDS, re.IGNORECASE)
PAID: Final = re.compile(mapping.PAID_STATUSES, re.IGNORECASE)


def propose_roles(db: duckdb.DuckDBPyConnection, partners: PartnerRoles) -> dict[str, Proposal]:
    """Return a proposal for every role, in the order of the mapping.

    `db` is a published version. The roles of partners are documented, or set by a person.
    """
    choices = Choices(Evidence(db))
    _Search(choices, Samples(db)).run(partners)
    sides = {column.stream for column in choices.evidence.shares}
    proposals = {}
    for side in SIDES:
        for name, _field in getattr(mapping.Mapping(), side):
            role = f"{side}.{name}"
            if side in sides:
                proposals[role] = choices.proposals[role]
            else:
                proposals[role] = Proposal(None, f"There are no rows of {side}.")
    return proposals


class _Search:
    """Looks for the field of each role; what is looked for next depends on the roles found."""

    def __init__(self, choices: Choices, samples: Samples) -> None:
        self._choices = choices
        self._evidence = choices.evidence
        self._samples = samples

    def run(self, partners: PartnerRoles) -> None:
        """Look for every role, in an order in which each has what it depends on."""
        self._partners(partners)
        for side in ("usage", "billing"):
            self._key(side)
            self._choices.choose_by("codes", f"{side}.currency")
            self._refer(f"{side}.partner", "partners.id", self._choices.free(side))
        # A value that many lines share refers to no single record of usage.
        shares = self._evidence.shares
        items = self._choices.free("billing.line_usage")
        rare = [column for column in items if shares[column]["different"].value >= SOME]
        self._refer("billing.line_usage", "usage.id", rare)
        self._choices.choose_by("codes", "billing.line_currency")
        self._money("usage.")
        self._money("billing.line_")
        self._agree()
        self._total()
        for role, kind in NAMED_ROLES.items():
            if role in AGREE:
                self._choose_agreeing(kind, role, AGREE[role])
            else:
                self._choices.choose_by(kind, role)
        self._choose_values(
            ("billing.counted_statuses", "billing.other_statuses"), "billing.status", _counts
        )
        self._choose_values(
            ("billing.credit_kinds", "billing.other_kinds"), "billing.kind", CREDIT.search
        )
        self._paid_statuses()
        self._units()

    def _total(self) -> None:
        """Find the total of a bill: what its lines add up to, else by name."""
        line = self._choices.found.get("billing.line_amount")
        totals = self._choices.numbers("billing.amount")
        sums = self._samples.sums(line, totals) if line and totals else {}
        if not self._choices.choose(
            "billing.amount", sums, "sampled bills are the sum of their lines"
        ):
            self._choices.choose_by("numbers", "billing.amount", "; no lines add up to it")

    def _units(self) -> None:
        """Say of both sides whether their amounts are in minor units."""
        units = find_units(self._samples, self._choices.found)
        for side, amounts in AMOUNTS.items():
            unit = "minor" if side in units.minor else "major"
            proposal = Proposal(None, f"{side}.amount has no field.")
            if amounts & self._choices.found.keys():
                proposal = Proposal(unit, units.reason)
            self._choices.proposals[f"{side}.amount_unit"] = proposal

    def _partners(self, roles: PartnerRoles) -> None:
        columns = {column.path: column for column in self._choices.free("partners")}
        for name, path in roles:
            role = f"partners.{name}"
            is_documented = path == PartnerRoles.model_fields[name].default
            reason = "The service documents it." if is_documented else "mapping.toml says so."
            field = None
            if path in columns:
                self._choices.found[role] = columns[path]
                field = path
            elif path:
                reason += f" No record has a field {path}."
            self._choices.proposals[role] = Proposal(field, reason)

    def _key(self, side: str) -> None:
        """Find the primary key of a list, else a field that differs in every row."""
        columns = self._choices.free(side)
        key = self._evidence.keys.get(side)
        unique = [column for column in columns if column.path == key]
        differ = "it is the primary key of the list"
        if not unique:
            unique = [column for column in columns if self._evidence.is_unique(column)]
            differ = "all differ"
        shares = {column: self._evidence.shares[column]["filled"] for column in unique}
        self._choices.choose(f"{side}.id", shares, f"rows have a value; {differ}")

    def _refer(self, role: str, target: str, columns: Iterable[FieldColumn]) -> None:
        """Find the field whose values are those of another list's key."""
        key = self._choices.found.get(target)
        if key is None:
            reason = f"{target} has no field, so no field can refer to it."
            self._choices.reject(role, reason)
            return
        shares = {column: self._evidence.referring(column, key) for column in columns}
        self._choices.choose(role, shares, f"values are in {key.stream}.{key.path}")

    def _money(self, prefix: str) -> None:
        """Find quantity, price and amount: by what multiplies, else by name."""
        quantity, price, amount = (f"{prefix}{name}" for name in NUMBERS)
        roles = (quantity, price, amount)
        numbers = self._choices.numbers(quantity)
        only = f" (only {WIDTH} of {len(numbers)} numbers)" if len(numbers) > WIDTH else ""
        currency = self._choices.found.get(f"{side_of(prefix)}.currency")
        products = self._products(roles, numbers, currency)
        if products:
            one, two, product = (column.path for column in next(iter(products)))
            meaning = f"sampled rows are {one} x {two} = {product}{only}"
            for position, role in enumerate(roles):
                shares = {columns[position]: share for columns, share in products.items()}
                self._choices.choose(role, shares, meaning)
        # In this order: unitPrice is a price, and no quantity of units.
        for role in (price, amount, quantity):
            if role not in self._choices.proposals:
                self._choices.choose_by("numbers", role, f"; no product confirms it{only}")

    def _products(
        self, roles: Sequence[str], numbers: Sequence[FieldColumn], currency: FieldColumn | None
    ) -> dict[Columns, Share]:
        """Return the best products among columns of numbers; else, among texts that say numbers."""
        for tried in ([column for column in numbers if column.is_number], numbers):
            products = self._samples.products(tried[:WIDTH], currency)
            good = {columns: share for columns, share in products.items() if share.value >= SURE}
            best_products = best(good, partial(_product_rank, roles))
            if best_products:
                return {columns: good[columns] for columns in best_products}
        return {}

    def _agree(self) -> None:
        """Find amounts without a name: fields of lines that add up to a field of their usage."""
        found = self._choices.found
        key = found.get("usage.id")
        reference = found.get("billing.line_usage")
        roles = ("usage.amount", "billing.line_amount")
        has_both = found.keys() >= {*roles}
        if key is None or reference is None or has_both:
            return
        used = self._possible_amounts("usage.amount")
        billed = self._possible_amounts("billing.line_amount")
        shares = self._samples.agreeing((key, used), (reference, billed))
        good = {columns: share for columns, share in shares.items() if share.value >= SURE}
        # None of them has a name that fits, so the order is the same for all.
        pairs = best(good, len)
        if not pairs:
            return
        for position, role in enumerate(roles):
            if role not in found:
                agreeing = {columns[position]: good[columns] for columns in pairs}
                self._choices.choose(role, agreeing, "sums of lines are equal to their usage")

    def _possible_amounts(self, role: str) -> list[FieldColumn]:
        """Return the column of a role, or those that may have it."""
        if role in self._choices.found:
            return [self._choices.found[role]]
        return self._choices.numbers(role)[:WIDTH]

    def _choose_agreeing(self, kind: str, role: str, other: str) -> None:
        """Give a role to a field whose name fits and whose values the other side has, too."""
        target = self._choices.found.get(other)
        if target is None:
            reason = f"{other} has no field to compare values with."
            self._choices.reject(role, reason)
            return
        shares = {}
        for column in self._choices.free(role):
            is_named = rank(role, column) < UNNAMED
            if is_named and self._evidence.shares[column][kind].value >= NAMED:
                shares[column] = self._evidence.referring(column, target)
        self._choices.choose(role, shares, f"values are in usage.{target.path}", needs_name=True)

    def _choose_values(
        self, roles: tuple[str, str], of_role: str, is_meant: Callable[[str], object]
    ) -> None:
        """Choose which values of a field of bills mean that they count, or are credit notes.

        The others are listed as well, so that a new value is seen as one.
        """
        meant_role, others_role = roles
        column = self._choices.found.get(of_role)
        if column is None:
            reason = f"{of_role} has no field."
            self._choices.reject(meant_role, reason)
            self._choices.reject(others_role, reason)
            return
        meant: list[str] = []
        others: list[str] = []
        for value in self._evidence.values(column):
            if is_meant(value):
                meant.append(value)
            else:
                others.append(value)
        if of_role == "billing.status" and not self._evidence.is_filled(column):
            others.append(mapping.NO_STATUS)
        reason = f"Other values: {', '.join(others) or 'none'}."
        self._choices.proposals[meant_role] = Proposal(tuple(meant) or None, reason)
        self._choices.proposals[others_role] = Proposal(tuple(others), reason)

    def _paid_statuses(self) -> None:
        """Choose which statuses say that a bill is paid."""
        column = self._choices.found.get("billing.status")
        proposal = Proposal(None, "billing.status has no field.")
        if column is not None:
            values = self._evidence.values(column)
            paid = tuple(value for value in values if PAID.fullmatch(value))
            proposal = Proposal(paid or None, f"{len(values) - len(paid)} others do not say so.")
        self._choices.proposals["billing.paid_statuses"] = proposal


def _counts(status: str) -> bool:
    """Return whether a status sounds as if its bills count."""
    return not UNCOUNTED.search(status)


def _product_rank(roles: Sequence[str], product: Columns) -> tuple[float, bool]:
    """Return how well a product is named, 0 the best; a quantity is more likely whole."""
    quantity, price, _amount = product
    names = sum(rank(role, column) for role, column in zip(roles, product, strict=True))
    return (names, price.scale == 0 < quantity.scale)

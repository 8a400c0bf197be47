"""Proposes a field for each role of `config/mapping.toml`: by its name and by what rows show.

Keys first, then what refers to them, then money, which needs the currency; in the end what only a
name says. Where two fields are equally good, none is proposed.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import duckdb

from pipelines.finance import mapping
from pipelines.finance.mapping import PartnerRoles
from pipelines.finance.reconcile.evidence import FEW, SOME, Evidence, Share
from pipelines.finance.reconcile.names import OTHERS, UNNAMED, is_number_named, rank
from pipelines.finance.reconcile.roles import NUMBERS, SIDES, FieldColumn, words
from pipelines.finance.reconcile.samples import Samples
from pipelines.finance.reconcile.spelled import Kind, kind_of
from pipelines.finance.reconcile.units import AMOUNTS, find_units

SURE: Final = 0.9  # a share that shows a role alone
NAMED: Final = 0.5  # a share that shows a role together with a name
CLOSE: Final = 0.02  # shares that differ by less are equally good
# Numbers of a table that are multiplied: all combinations of three are.
WIDTH: Final = 12
# Kinds of fields, with what their values show.
KINDS: Final = {
    "codes": "values are ISO 4217 codes",
    "few": f"rows have one of at most {FEW} values",
    "times": "values are dates, times or months",
    "labels": "rows have a value",
    "words": f"rows have one of at most {FEW} values, and no number",
    "numbers": "rows have a number",
}
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
T = TypeVar("T")
Columns = tuple[FieldColumn, ...]
UNCOUNTED: Final = re.compile(mapping.UNCOUNTED_WORDS, re.IGNORECASE)
CREDIT: Final = re.compile(mapping.CREDIT_WORDS, re.IGNORECASE)
PAID: Final = re.compile(mapping.PAID_STATUSES, re.IGNORECASE)


class Proposal(NamedTuple):
    """What is proposed for a role, and why.

    `field` is the path of a field, the values of counted_statuses and credit_kinds, or None.
    """

    field: str | tuple[str, ...] | None
    evidence: str


def propose_roles(db: duckdb.DuckDBPyConnection, partners: PartnerRoles) -> dict[str, Proposal]:
    """Return a proposal for every role, in the order of the mapping.

    `db` is a published version. The roles of partners are documented, or set by a person.
    """
    evidence = Evidence(db)
    search = _Search(evidence, Samples(db))
    search.run(partners)
    sides = {column.stream for column in evidence.shares}
    proposals = {}
    for side in SIDES:
        for name, _field in getattr(mapping.Mapping(), side):
            role = f"{side}.{name}"
            if side in sides:
                proposals[role] = search.proposals[role]
            else:
                proposals[role] = Proposal(None, f"There are no rows of {side}.")
    return proposals


class _Search:
    """The roles found so far, with their columns: what is looked for next depends on them."""

    def __init__(self, evidence: Evidence, samples: Samples) -> None:
        self._evidence = evidence
        self._samples = samples
        self._found: dict[str, FieldColumn] = {}
        self.proposals: dict[str, Proposal] = {}

    def run(self, partners: PartnerRoles) -> None:
        """Look for every role, in an order in which each has what it depends on."""
        self._partners(partners)
        for side in ("usage", "billing"):
            self._key(side)
            self._choose_by("codes", f"{side}.currency")
            self._refer(f"{side}.partner", "partners.id", self._free(side))
        # A value that many lines share refers to no single record of usage.
        shares = self._evidence.shares
        items = self._free("billing.line_usage")
        rare = [column for column in items if shares[column]["different"].value >= SOME]
        self._refer("billing.line_usage", "usage.id", rare)
        self._money("usage.")
        self._money("billing.line_")
        self._agree()
        self._total()
        for role, kind in NAMED_ROLES.items():
            if role in AGREE:
                self._choose_agreeing(kind, role, AGREE[role])
            else:
                self._choose_by(kind, role)
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
        line = self._found.get("billing.line_amount")
        totals = self._numbers("billing.amount")
        sums = self._samples.sums(line, totals) if line and totals else {}
        if not self._choose("billing.amount", sums, "sampled bills are the sum of their lines"):
            self._choose_by("numbers", "billing.amount", "; no lines add up to it")

    def _units(self) -> None:
        """Say of both sides whether their amounts are in minor units."""
        units = find_units(self._samples, self._found)
        for side, amounts in AMOUNTS.items():
            unit = "minor" if side in units.minor else "major"
            proposal = Proposal(None, f"{side}.amount has no field.")
            if amounts & self._found.keys():
                proposal = Proposal(unit, units.reason)
            self.proposals[f"{side}.amount_unit"] = proposal

    def _free(self, role: str) -> list[FieldColumn]:
        """Return the columns that have no role yet: of records, or of one list in them."""
        side, _, name = role.partition(".")
        is_line = name.startswith("line_")
        taken = set(self._found.values())
        free = []
        for column in self._evidence.shares:
            is_of_lines = column.row == "line"
            if column.stream == side and is_of_lines == is_line and column not in taken:
                free.append(column)
        if is_line and name != "line_usage":
            lines = self._table_of_lines()
            free = [column for column in free if column.table == lines]
        return free

    def _table_of_lines(self) -> str | None:
        """Return the table with the lines of bills; None where it may be one of several."""
        reference = self._found.get("billing.line_usage")
        if reference:
            return reference.table
        tables = set()
        for column in self._evidence.shares:
            if column.stream == "billing" and column.row == "line":
                tables.add(column.table)
        return tables.pop() if len(tables) == 1 else None

    def _numbers(self, role: str) -> list[FieldColumn]:
        """Return free columns of numbers, then those of texts that all say one, but identifiers."""
        numbers = []
        texts = []
        for column in self._free(role):
            if column.is_number:
                if not OTHERS & set(words(column.path)):
                    numbers.append(column)
            elif self._says_numbers(column) and is_number_named(column):
                texts.append(column)
        side = role.rpartition(".")[0]
        return numbers + sorted(texts, key=partial(_rank_as_number, side))

    def _says_numbers(self, column: FieldColumn) -> bool:
        """Return whether nearly all texts of a column say a number."""
        shares = self._evidence.shares[column]
        least = SURE * shares["filled"].part
        return column.type == "VARCHAR" and shares["numbers"].part >= least > 0

    def _choose(
        self,
        role: str,
        shares: Mapping[FieldColumn, Share],
        meaning: str,
        *,
        needs_name: bool = False,
    ) -> bool:
        """Give a role to the field with the best name and share; whether any is good enough."""
        ranks = {column: rank(role, column) for column in shares}
        tried = [column for column in shares if ranks[column] < UNNAMED or not needs_name]
        good = _good_enough(tried, shares, ranks)

        def order(column: FieldColumn) -> tuple[bool, float]:
            return good[column].value < SURE, ranks[column]

        best = _best(good, order)
        if len(best) == 1:
            column = best[0]
            self._found[role] = column
            reason = _why_chosen(role, column, f"{good[column]} {meaning}.")
            self.proposals[role] = Proposal(column.path, reason)
            return True
        if best:
            paths = ", ".join(column.path for column in best)
            reason = f"Equally good: {paths}. Choose one in mapping.toml."
        elif tried:
            nearest = max(tried, key=partial(_share_of, shares))
            reason = f"No field qualifies. Nearest: {nearest.path}, {shares[nearest]} {meaning}."
        else:
            reason = "No field has a name that fits."
        self.proposals[role] = Proposal(None, reason)
        return bool(best)

    def _choose_by(self, kind: str, role: str, but: str = "") -> None:
        """Give a role to a field by what all rows say of it, and but for codes by its name.

        Numbers in columns of text are looked at where no column of numbers has a name that fits.
        """
        shares = {column: self._evidence.shares[column][kind] for column in self._free(role)}
        meaning = KINDS[kind] + but
        if kind == "numbers":
            numbers = {column: share for column, share in shares.items() if column.is_number}
            if self._choose(role, numbers, meaning, needs_name=True):
                return
        self._choose(role, shares, meaning, needs_name=kind != "codes")

    def _partners(self, roles: PartnerRoles) -> None:
        columns = {column.path: column for column in self._free("partners")}
        for name, path in roles:
            role = f"partners.{name}"
            is_documented = path == PartnerRoles.model_fields[name].default
            reason = "The service documents it." if is_documented else "mapping.toml says so."
            field = None
            if path in columns:
                self._found[role] = columns[path]
                field = path
            elif path:
                reason += f" No record has a field {path}."
            self.proposals[role] = Proposal(field, reason)

    def _key(self, side: str) -> None:
        """Find the primary key of a list, else a field that differs in every row."""
        columns = self._free(side)
        key = self._evidence.keys.get(side)
        unique = [column for column in columns if column.path == key]
        differ = "it is the primary key of the list"
        if not unique:
            unique = [column for column in columns if self._evidence.is_unique(column)]
            differ = "all differ"
        shares = {column: self._evidence.shares[column]["filled"] for column in unique}
        self._choose(f"{side}.id", shares, f"rows have a value; {differ}")

    def _refer(self, role: str, target: str, columns: Iterable[FieldColumn]) -> None:
        """Find the field whose values are those of another list's key."""
        key = self._found.get(target)
        if key is None:
            reason = f"{target} has no field, so no field can refer to it."
            self.proposals[role] = Proposal(None, reason)
            return
        shares = {column: self._evidence.referring(column, key) for column in columns}
        self._choose(role, shares, f"values are in {key.stream}.{key.path}")

    def _money(self, prefix: str) -> None:
        """Find quantity, price and amount: by what multiplies, else by name."""
        quantity, price, amount = (f"{prefix}{name}" for name in NUMBERS)
        roles = (quantity, price, amount)
        numbers = self._numbers(quantity)
        only = f" (only {WIDTH} of {len(numbers)} numbers)" if len(numbers) > WIDTH else ""
        side = prefix.partition(".")[0]
        products = self._products(roles, numbers, self._found.get(f"{side}.currency"))
        if products:
            one, two, product = (column.path for column in next(iter(products)))
            meaning = f"sampled rows are {one} x {two} = {product}{only}"
            for at, role in enumerate(roles):
                shares = {columns[at]: share for columns, share in products.items()}
                self._choose(role, shares, meaning)
        # In this order: unitPrice is a price, and no quantity of units.
        for role in (price, amount, quantity):
            if role not in self.proposals:
                self._choose_by("numbers", role, f"; no product confirms it{only}")

    def _products(
        self, roles: Sequence[str], numbers: Sequence[FieldColumn], currency: FieldColumn | None
    ) -> dict[Columns, Share]:
        """Return the best products among columns of numbers; else, among texts that say numbers."""
        for tried in ([column for column in numbers if column.is_number], numbers):
            products = self._samples.products(tried[:WIDTH], currency)
            good = {columns: share for columns, share in products.items() if share.value >= SURE}
            best = _best(good, partial(_product_rank, roles))
            if best:
                return {columns: good[columns] for columns in best}
        return {}

    def _agree(self) -> None:
        """Find amounts without a name: fields of lines that add up to a field of their usage."""
        sides = ("usage.amount", "billing.line_amount")
        key = self._found.get("usage.id")
        reference = self._found.get("billing.line_usage")
        if not key or not reference or self._found.keys() >= {*sides}:
            return
        used, billed = (self._possible_amounts(role) for role in sides)
        shares = self._samples.agreeing((key, used), (reference, billed))
        good = {columns: share for columns, share in shares.items() if share.value >= SURE}
        best = _best(good, len)  # the order is the same for all: none of them has a name
        if not best:
            return
        for at, role in enumerate(sides):
            if role not in self._found:
                agreeing = {columns[at]: good[columns] for columns in best}
                self._choose(role, agreeing, "sums of lines are equal to their usage")

    def _possible_amounts(self, role: str) -> list[FieldColumn]:
        """Return the column of a role, or those that may have it."""
        if role in self._found:
            return [self._found[role]]
        return self._numbers(role)[:WIDTH]

    def _choose_agreeing(self, kind: str, role: str, other: str) -> None:
        """Give a role to a field whose name fits and whose values the other side has, too."""
        target = self._found.get(other)
        if target is None:
            reason = f"{other} has no field to compare values with."
            self.proposals[role] = Proposal(None, reason)
            return
        shares = {}
        for column in self._free(role):
            is_named = rank(role, column) < UNNAMED
            if is_named and self._evidence.shares[column][kind].value >= NAMED:
                shares[column] = self._evidence.referring(column, target)
        self._choose(role, shares, f"values are in usage.{target.path}", needs_name=True)

    def _choose_values(
        self, roles: tuple[str, str], of_role: str, is_meant: Callable[[str], object]
    ) -> None:
        """Choose which values of a field of bills mean that they count, or are credit notes.

        The others are listed as well, so that a new value is seen as one.
        """
        meant_role, others_role = roles
        column = self._found.get(of_role)
        if column is None:
            reason = f"{of_role} has no field."
            self.proposals[meant_role] = Proposal(None, reason)
            self.proposals[others_role] = Proposal(None, reason)
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
        self.proposals[meant_role] = Proposal(tuple(meant) or None, reason)
        self.proposals[others_role] = Proposal(tuple(others), reason)

    def _paid_statuses(self) -> None:
        """Choose which statuses say that a bill is paid."""
        column = self._found.get("billing.status")
        proposal = Proposal(None, "billing.status has no field.")
        if column is not None:
            values = self._evidence.values(column)
            paid = tuple(value for value in values if PAID.fullmatch(value))
            proposal = Proposal(paid or None, f"{len(values) - len(paid)} others do not say so.")
        self.proposals["billing.paid_statuses"] = proposal


def _good_enough(
    columns: Iterable[FieldColumn],
    shares: Mapping[FieldColumn, Share],
    ranks: Mapping[FieldColumn, float],
) -> dict[FieldColumn, Share]:
    """Return the shares of the columns that may have a role: with a name, a smaller one will do."""
    good = {}
    for column in columns:
        least = SURE if ranks[column] == UNNAMED else NAMED
        if shares[column].value >= least:
            good[column] = shares[column]
    return good


def _why_chosen(role: str, column: FieldColumn, reason: str) -> str:
    """Return why a column has a role: what its values show, and what its type and name do."""
    if kind_of(role) is Kind.NUMBER and not column.is_number:
        reason += " The numbers are texts."
    if rank(role, column) < UNNAMED:
        reason += " The name fits."
    return reason


def _counts(status: str) -> bool:
    """Return whether a status sounds as if its bills count."""
    return not UNCOUNTED.search(status)


def _best(shares: Mapping[T, Share], order: Callable[[T], Any]) -> list[T]:
    """Return the first in an order, and of these the ones with the largest share, all if equal."""
    if not shares:
        return []
    least = min(map(order, shares))
    first = [candidate for candidate in shares if order(candidate) == least]
    most = max(shares[candidate].value for candidate in first)
    return [candidate for candidate in first if most - shares[candidate].value < CLOSE]


def _share_of(shares: Mapping[FieldColumn, Share], column: FieldColumn) -> float:
    return shares[column].value


def _rank_as_number(side: str, column: FieldColumn) -> float:
    """Return how well a column is named for the role of a number that fits it best."""
    return min(rank(f"{side}.{name}", column) for name in NUMBERS)


def _product_rank(roles: Sequence[str], product: Columns) -> tuple[float, bool]:
    """Return how well a product is named, 0 the best; whole numbers are rather quantities."""
    quantity, price, _amount = product
    names = sum(rank(role, column) for role, column in zip(roles, product, strict=True))
    return (names, price.scale == 0 < quantity.scale)

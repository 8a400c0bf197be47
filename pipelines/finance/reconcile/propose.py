"""Proposes a field for each role of `config/mapping.toml`: by its name and by what rows show.

Keys first, then what refers to them, then money, which needs the currency; in the end what only a
name says. Where two fields are equally good, none is proposed.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import duckdb

from pipelines.finance import mapping
from pipelines.finance.mapping import PartnerRoles
from pipelines.finance.reconcile.evidence import FEW, SOME, Evidence, Share
from pipelines.finance.reconcile.names import OTHERS, UNNAMED, is_number_named, rank
from pipelines.finance.reconcile.roles import NUMBERS, SIDES, Column, words
from pipelines.finance.reconcile.spelled import Kind, kind_of
from pipelines.finance.reconcile.units import AMOUNTS, find_units

SURE, NAMED = 0.9, 0.5  # shares that show a role alone, and together with a name
CLOSE = 0.02  # shares that differ by less are equally good
WIDTH = 12  # numbers of a table that are multiplied; all combinations of three are
KINDS: Final = {  # of fields, with what their values show
    "codes": "values are ISO 4217 codes",
    "few": f"rows have one of at most {FEW} values",
    "times": "values are dates, times or months",
    "labels": "rows have a value",
    "numbers": "rows have a number",
}
NAMED_ROLES: Final = {  # period after other times: a date may be any of them
    **dict.fromkeys(("billing.status", "billing.kind"), "few"),
    **dict.fromkeys(("usage.updated", "usage.recorded", "usage.period"), "times"),
    **dict.fromkeys(("billing.updated", "billing.issued", "billing.period"), "times"),
    **dict.fromkeys(("usage.organization", "usage.plan", "usage.metric"), "labels"),
    **dict.fromkeys(("billing.organization", "billing.number", "billing.line_plan"), "labels"),
}
AGREE: Final = {  # whose values are those of the other side
    "billing.organization": "usage.organization",
    "billing.line_plan": "usage.plan",
}
UNCOUNTED: Final = re.compile(mapping.UNCOUNTED_WORDS, re.IGNORECASE)
CREDIT: Final = re.compile(mapping.CREDIT_WORDS, re.IGNORECASE)


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
    search, sides = _Search(evidence), {each.stream for each in evidence.shares}
    search.run(partners)
    return {
        f"{side}.{name}": search.proposals[f"{side}.{name}"]
        if side in sides
        else Proposal(None, f"There are no rows of {side}.")
        for side in SIDES
        for name, _ in getattr(mapping.Mapping(), side)
    }


class _Search:
    """The roles found so far, with their columns: what is looked for next depends on them."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._found: dict[str, Column] = {}
        self.proposals: dict[str, Proposal] = {}

    def run(self, partners: PartnerRoles) -> None:
        self._partners(partners)
        for side in ("usage", "billing"):
            self._key(side)
            self._choose_by("codes", f"{side}.currency")
            self._refer(f"{side}.partner", "partners.id", self._free(side))
        items = self._free("billing.line_usage")
        rare = [each for each in items if self._evidence.shares[each]["different"].value >= SOME]
        self._refer("billing.line_usage", "usage.id", rare)
        self._money("usage.")
        self._money("billing.line_")
        self._agree()
        line, totals = self._found.get("billing.line_amount"), self._numbers("billing.amount")
        sums = self._evidence.sums(line, totals) if line and totals else {}
        if not self._choose("billing.amount", sums, "sampled bills are the sum of their lines"):
            self._choose_by("numbers", "billing.amount", "; no lines add up to it")
        for role, kind in NAMED_ROLES.items():
            if role in AGREE:
                self._choose_agreeing(kind, role, AGREE[role])
            else:
                self._choose_by(kind, role)
        self._choose_values(
            ("billing.counted_statuses", "billing.other_statuses"),
            "billing.status",
            lambda each: not UNCOUNTED.search(each),
        )
        self._choose_values(
            ("billing.credit_kinds", "billing.other_kinds"), "billing.kind", CREDIT.search
        )
        self._units()

    def _units(self) -> None:
        """Say of both sides whether their amounts are in minor units."""
        units = find_units(self._evidence, self._found)
        for side, amounts in AMOUNTS.items():
            unit = "minor" if side in units.minor else "major"
            proposal = Proposal(None, f"{side}.amount has no field.")
            if amounts & self._found.keys():
                proposal = Proposal(unit, units.reason)
            self.proposals[f"{side}.amount_unit"] = proposal

    def _free(self, role: str) -> list[Column]:
        """Return the columns that have no role yet: of records, or of one list in them."""
        side, _, name = role.partition(".")
        is_line, reference = name.startswith("line_"), self._found.get("billing.line_usage")
        free = [
            each
            for each in self._evidence.shares
            if each.stream == side and (each.row == "line") == is_line
        ]
        if is_line and name != "line_usage":
            tables = {reference.table} if reference else {each.table for each in free}
            free = [each for each in free if {each.table} == tables]
        return [each for each in free if each not in self._found.values()]

    def _numbers(self, role: str) -> list[Column]:
        """Return free columns of numbers, then those of texts that all say one, but identifiers."""
        free = self._free(role)
        numbers = [each for each in free if each.is_number and not OTHERS & set(words(each.path))]
        texts = [each for each in free if self._says_numbers(each) and is_number_named(each)]
        return numbers + sorted(texts, key=lambda each: self._rank_as_number(role, each))

    def _says_numbers(self, column: Column) -> bool:
        shares = self._evidence.shares[column]
        return (
            column.type == "VARCHAR" and shares["numbers"].part >= SURE * shares["filled"].part > 0
        )

    def _rank_as_number(self, role: str, column: Column) -> float:
        side = role.rpartition(".")[0]
        return min(rank(f"{side}.{name}", column) for name in NUMBERS)

    def _choose(
        self, role: str, shares: Mapping[Column, Share], meaning: str, *, needs_name: bool = False
    ) -> bool:
        """Give a role to the field with the best name and share; whether any is good enough."""
        ranks = {each: rank(role, each) for each in shares}
        tried = [each for each in shares if ranks[each] < UNNAMED or not needs_name]
        least = {each: SURE if ranks[each] == UNNAMED else NAMED for each in tried}
        good = {each: shares[each] for each in tried if shares[each].value >= least[each]}
        best = _best(good, lambda each: (good[each].value < SURE, ranks[each]))
        field, reason = None, "No field has a name that fits."
        if len(best) == 1:
            self._found[role], field, share = best[0], best[0].path, good[best[0]]
            is_text = kind_of(role) is Kind.NUMBER and not best[0].is_number
            reason = f"{share} {meaning}." + " The numbers are texts." * is_text
            reason += " The name fits." * (ranks[best[0]] < UNNAMED)
        elif best:
            paths = ", ".join(each.path for each in best)
            reason = f"Equally good: {paths}. Choose one in mapping.toml."
        elif tried:
            near = max(tried, key=lambda each: shares[each].value)
            reason = f"No field qualifies. Nearest: {near.path}, {shares[near]} {meaning}."
        self.proposals[role] = Proposal(field, reason)
        return bool(best)

    def _choose_by(self, kind: str, role: str, but: str = "") -> None:
        """Give a role to a field by what all rows say of it, and but for codes by its name.

        Numbers in columns of text are looked at where no column of numbers has a name that fits.
        """
        shares = {each: self._evidence.shares[each][kind] for each in self._free(role)}
        numbers = {each: shares[each] for each in shares if each.is_number}
        if kind == "numbers" and self._choose(role, numbers, KINDS[kind] + but, needs_name=True):
            return
        self._choose(role, shares, KINDS[kind] + but, needs_name=kind != "codes")

    def _partners(self, roles: PartnerRoles) -> None:
        columns = {each.path: each for each in self._free("partners")}
        for name, path in roles:
            role, default = f"partners.{name}", PartnerRoles.model_fields[name].default
            reason = "The service documents it." if path == default else "mapping.toml says so."
            if path in columns:
                self._found[role] = columns[path]
            elif path:
                reason += f" No record has a field {path}."
            self.proposals[role] = Proposal(path if path in columns else None, reason)

    def _key(self, side: str) -> None:
        """Find the primary key of a list, else a field that differs in every row."""
        columns, key = self._free(side), self._evidence.keys.get(side)
        proven = [each for each in columns if each.path == key]
        unique = proven or [each for each in columns if self._evidence.is_unique(each)]
        shares = {each: self._evidence.shares[each]["filled"] for each in unique}
        differ = "all differ" if not proven else "it is the primary key of the list"
        self._choose(f"{side}.id", shares, f"rows have a value; {differ}")

    def _refer(self, role: str, target: str, columns: Iterable[Column]) -> None:
        """Find the field whose values are those of another list's key."""
        key = self._found.get(target)
        if key is None:
            reason = f"{target} has no field, so no field can refer to it."
            self.proposals[role] = Proposal(None, reason)
            return
        shares = {each: self._evidence.found(each, key) for each in columns}
        self._choose(role, shares, f"values are in {key.stream}.{key.path}")

    def _money(self, prefix: str) -> None:
        """Find quantity, price and amount: by what multiplies, else by name."""
        quantity, price, amount = roles = [f"{prefix}{name}" for name in NUMBERS]
        numbers, currency = self._numbers(quantity), f"{prefix.partition('.')[0]}.currency"
        good, best = dict[tuple[Column, ...], Share](), list[Any]()
        for tried in ([each for each in numbers if each.is_number], numbers):
            if not best:
                products = self._evidence.products(tried[:WIDTH], self._found.get(currency))
                good = {each: share for each, share in products.items() if share.value >= SURE}
                best = _best(good, lambda each: _product_rank(roles, each))
        only = f" (only {WIDTH} of {len(numbers)} numbers)" if len(numbers) > WIDTH else ""
        for at, role in enumerate(roles if best else ()):
            one, two, product = (each.path for each in best[0])
            shares = {each[at]: good[each] for each in best}
            self._choose(role, shares, f"sampled rows are {one} x {two} = {product}{only}")
        for role in (price, amount, quantity):  # unitPrice is a price, no quantity of units
            if role not in self.proposals:
                self._choose_by("numbers", role, f"; no product confirms it{only}")

    def _agree(self) -> None:
        """Find amounts without a name: fields of lines that add up to a field of their usage."""
        sides = ("usage.amount", "billing.line_amount")
        key, reference = (self._found.get(each) for each in ("usage.id", "billing.line_usage"))
        if not key or not reference or self._found.keys() >= {*sides}:
            return
        used, billed = (
            [self._found[role]] if role in self._found else self._numbers(role)[:WIDTH]
            for role in sides
        )
        shares = self._evidence.agreeing((key, used), (reference, billed))
        good = {each: share for each, share in shares.items() if share.value >= SURE}
        best = _best(good, len)
        for at, role in enumerate(sides):
            if best and role not in self._found:
                found = {each[at]: shares[each] for each in best}
                self._choose(role, found, "sums of lines are equal to their usage")

    def _choose_agreeing(self, kind: str, role: str, other: str) -> None:
        """Give a role to a field whose name fits and whose values the other side has, too."""
        target = self._found.get(other)
        if target is None:
            reason = f"{other} has no field to compare values with."
            self.proposals[role] = Proposal(None, reason)
            return
        named = [each for each in self._free(role) if rank(role, each) < UNNAMED]
        shares = {
            each: self._evidence.found(each, target)
            for each in named
            if self._evidence.shares[each][kind].value >= NAMED
        }
        self._choose(role, shares, f"values are in usage.{target.path}", needs_name=True)

    def _choose_values(
        self, roles: tuple[str, str], of_role: str, is_meant: Callable[[str], object]
    ) -> None:
        """Choose which values of a field of bills mean that they count, or are credit notes.

        The others are listed as well, so that a new value is seen as one.
        """
        column = self._found.get(of_role)
        values = self._evidence.values(column) if column else []
        meant = tuple(each for each in values if is_meant(each))
        others = [each for each in values if each not in meant]
        if column and of_role == "billing.status" and not self._evidence.is_filled(column):
            others.append(mapping.NO_STATUS)
        reason = f"Other values: {', '.join(others) or 'none'}." if column else ""
        reason = reason or f"{of_role} has no field."
        self.proposals[roles[0]] = Proposal(meant or None, reason)
        self.proposals[roles[1]] = Proposal(tuple(others) if column else None, reason)


def _best(shares: Mapping[Any, Share], order: Callable[[Any], Any]) -> list[Any]:
    """Return the first in an order, and of these the ones with the largest share, all if equal."""
    first = [each for each in shares if order(each) == min(map(order, shares))]
    most = max((shares[each].value for each in first), default=0)
    return [each for each in first if most - shares[each].value < CLOSE]


def _product_rank(roles: Sequence[str], product: Sequence[Column]) -> tuple[float, bool]:
    """Return how well a product is named, 0 the best; whole numbers are rather quantities."""
    quantity, price, _ = product
    names = sum(rank(role, each) for role, each in zip(roles, product, strict=True))
    return (names, price.scale == 0 < quantity.scale)

"""Here: which fields of a version may have a role, and which of them is the best.

Where two are equally good, none is proposed. Not here: in which order roles are looked for, and by
what (propose).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from pipelines.finance.reconcile.evidence import FEW, Evidence, Share
from pipelines.finance.reconcile.names import OTHERS, UNNAMED, is_number_named, rank
from pipelines.finance.reconcile.roles import NUMBERS, FieldColumn, name_of, side_of, words
from pipelines.finance.reconcile.spelled import Kind, kind_of

SURE: Final = 0.9  # a share that shows a role alone
NAMED: Final = 0.5  # a share that shows a role together with a name
CLOSE: Final = 0.02  # shares that differ by less are equally good
# Kinds of fields, with what their values show.
KINDS: Final = {
    "codes": "values are ISO 4217 codes",
    "few": f"rows have one of at most {FEW} values",
    "times": "values are dates, times or months",
    "labels": "rows have a value",
    "words": f"rows have one of at most {FEW} values, and no number",
    "numbers": "rows have a number",
}
T = TypeVar("T")


class Proposal(NamedTuple):
    """What is proposed for a role, and why.

    `field` is the path of a field, the values of counted_statuses and credit_kinds, or None.
    """

    field: str | tuple[str, ...] | None
    evidence: str


class Choices:
    """The roles found so far, with their columns, and what is proposed for each role.

    What may be chosen depends on them: a column has one role.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.found: dict[str, FieldColumn] = {}
        self.proposals: dict[str, Proposal] = {}

    def reject(self, role: str, reason: str) -> None:
        """Propose no field for a role, and say why."""
        self.proposals[role] = Proposal(None, reason)

    def choose(
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

        chosen = best(good, order)
        if len(chosen) == 1:
            column = chosen[0]
            self.found[role] = column
            reason = _why_chosen(role, column, f"{good[column]} {meaning}.")
            self.proposals[role] = Proposal(column.path, reason)
            return True
        if chosen:
            paths = ", ".join(column.path for column in chosen)
            reason = f"Equally good: {paths}. Choose one in mapping.toml."
        elif tried:
            nearest = max(tried, key=partial(_share_of, shares))
            reason = f"No field qualifies. Nearest: {nearest.path}, {shares[nearest]} {meaning}."
        else:
            reason = "No field has a name that fits."
        self.reject(role, reason)
        return bool(chosen)

    def choose_by(self, kind: str, role: str, but: str = "") -> None:
        """Give a role to a field by what all rows say of it, and but for codes by its name.

        Numbers in columns of text are looked at where no column of numbers has a name that fits.
        """
        shares = {column: self.evidence.shares[column][kind] for column in self.free(role)}
        meaning = KINDS[kind] + but
        if kind == "numbers":
            numbers = {column: share for column, share in shares.items() if column.is_number}
            if self.choose(role, numbers, meaning, needs_name=True):
                return
        self.choose(role, shares, meaning, needs_name=kind != "codes")

    def free(self, role: str) -> list[FieldColumn]:
        """Return the columns that have no role yet: of records, or of one list in them."""
        side = side_of(role)
        name = name_of(role)
        is_line = name.startswith("line_")
        taken = set(self.found.values())
        free = []
        for column in self.evidence.shares:
            is_of_lines = column.row == "line"
            if column.stream == side and is_of_lines == is_line and column not in taken:
                free.append(column)
        if is_line and name != "line_usage":
            lines = self._table_of_lines()
            free = [column for column in free if column.table == lines]
        return free

    def _table_of_lines(self) -> str | None:
        """Return the table with the lines of bills; None where it may be one of several."""
        reference = self.found.get("billing.line_usage")
        if reference:
            return reference.table
        tables = set()
        for column in self.evidence.shares:
            if column.stream == "billing" and column.row == "line":
                tables.add(column.table)
        return tables.pop() if len(tables) == 1 else None

    def numbers(self, role: str) -> list[FieldColumn]:
        """Return free columns of numbers, then those of texts that all say one, but identifiers."""
        numbers = []
        texts = []
        for column in self.free(role):
            if column.is_number:
                if not OTHERS & set(words(column.path)):
                    numbers.append(column)
            elif self._says_numbers(column) and is_number_named(column):
                texts.append(column)
        return numbers + sorted(texts, key=partial(_rank_as_number, side_of(role)))

    def _says_numbers(self, column: FieldColumn) -> bool:
        """Return whether nearly all texts of a column say a number."""
        shares = self.evidence.shares[column]
        least = SURE * shares["filled"].part
        return column.type == "VARCHAR" and shares["numbers"].part >= least > 0


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


def best(shares: Mapping[T, Share], order: Callable[[T], Any]) -> list[T]:
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

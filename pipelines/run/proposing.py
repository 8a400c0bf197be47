"""Which field has which role: by what it is called and by what its rows say, never by one guess.

Keys and references go by how many values are found on the other side, money by what adds up and
multiplies, currencies by their codes; names decide among what the rows allow, and where two fields
are as good none is proposed. Not here: the counting (measures), the usual names (hints).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import duckdb

from pipelines.run import hints, measures
from pipelines.run.fields import Field, Fields
from pipelines.run.measures import Product, Share

SURE, NAMED = 0.9, 0.5  # of the values, that show a role alone, and with a name that says so
ITEMS = 0.5  # of the values that differ: what counts from 1 in every record refers to nothing
CLOSE = 0.02  # shares that are as good as each other
BY_NAME = 0.25  # what a name is worth in shares
Measure = Callable[[Field], Share]


@dataclass(frozen=True)
class Proposal:
    """A role, the path proposed for it, None where none is, and what speaks for it or against."""

    role: str
    path: str | None
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Candidate:
    """A field that may have a role: the share of its values that show it, and its name's rank."""

    field: Field
    share: Share
    rank: float | None

    @property
    def score(self) -> float:
        """How good it is: the share of its rows, and its name."""
        named = 0.0 if self.rank is None else BY_NAME - min(self.rank, 10 * BY_NAME) / 1000
        return self.share.value + named


@dataclass
class Finding:
    """The roles found so far, each with its field; what is looked for next leans on them."""

    database: duckdb.DuckDBPyConnection
    roles: dict[str, Field] = field(default_factory=dict)
    said: dict[str, list[str]] = field(default_factory=dict)

    @property
    def proposals(self) -> list[Proposal]:
        """Every role with what was found, in the order of the mapping."""
        return [
            Proposal(
                role,
                self.roles[role].path if role in self.roles else None,
                tuple(self.said.get(role, ["no field is called so, and no rows show it"])),
            )
            for role in hints.HINTS
        ]

    def give(self, role: str, which: Field, *evidence: str) -> None:
        """Give a role to a field."""
        self.roles[role] = which
        self.said[role] = list(evidence)

    def add(self, role: str, share: Share, words: str) -> None:
        """Add what the rows say of a role that was given."""
        if share.whole:
            self.said[role].append(f"{share.words} {words}")

    def free(self, stream: str, candidates: Iterable[Field]) -> list[Field]:
        """Return those that have no role of the stream yet."""
        taken = {each for role, each in self.roles.items() if role.startswith(f"{stream}.")}
        return [each for each in candidates if each not in taken]

    def key(self, role: str, of: Fields, others: Sequence[Field]) -> None:
        """Find what tells the records apart: the sync knows it, or one field differs in each.

        Where several do, it is the one to which a field of the `others` refers.
        """
        proven = of.at(of.key) if of.key else None
        if proven is not None:
            share = measures.differing(self.database, proven)
            self.give(role, proven, f"the sync tells records apart by it: {share.words} differ")
            return
        labels = [each for each in of.outer if each.textual or each.whole]
        made = candidates(role, labels, lambda each: measures.differing(self.database, each))
        unique = [each for each in made if each.share.part == each.share.whole > 1]
        self.best(role, unique, "differ in every row")
        if role in self.roles:
            return
        meant = [(each.field, refers) for each in unique for refers in self._refer(each, others)]
        if len({each for each, _ in meant}) == 1:
            which, (share, other) = meant[0]
            name = f"{other.stream}.{other.path}"
            self.give(role, which, f"differs in every row, and {share.words} {name} are in it")

    def _refer(self, key: Candidate, others: Sequence[Field]) -> list[tuple[Share, Field]]:
        """Return which fields of other streams have values of a key nearly always."""
        labels = [each for each in others if each.textual or each.whole]
        found = [(measures.found(self.database, each, key.field), each) for each in labels]
        return [each for each in found if each[0].value >= SURE and each[0].distinct > 1]

    def refers(
        self, role: str, fields: Sequence[Field], target: str, *, once: bool = False
    ) -> None:
        """Find what refers to the key of another stream; `once`: hardly two refer to the same."""
        aim = self.roles.get(target)
        if aim is None:
            self.said[role] = [f"{target} is not known, to which it would refer"]
            return
        labels = [each for each in fields if each.textual or each.whole]
        made = candidates(role, labels, lambda each: measures.found(self.database, each, aim))
        if once:
            made = [each for each in made if each.share.distinct >= ITEMS * each.share.part]
        self.best(role, made, f"are in {aim.stream}.{aim.path}")

    def best(self, role: str, candidates: Sequence[Candidate], words: str) -> None:
        """Give a role to the best of those that are good enough, or say why to none."""
        ordered = sorted(candidates, key=lambda each: -each.score)
        good = [
            each for each in ordered if each.share.value >= (SURE if each.rank is None else NAMED)
        ]
        if not good:
            tried = [each for each in ordered if each.share.part][:1]
            nearest = [f"the nearest is {each.field.path}: {each.share.words}" for each in tried]
            self.said[role] = [f"no field of which enough {words}", *nearest]
            return
        first, *others = good
        rivals = [each for each in others if _as_good(first, each)]
        if rivals:
            every = ", ".join(each.field.path for each in (first, *rivals))
            self.said[role] = [f"{every} are as good as each other: a person has to say"]
            return
        also = [f"{each.field.path}: {each.share.words}" for each in others[:2]]
        self.give(
            role,
            first.field,
            f"{first.share.words} {words}",
            *_called(first.rank),
            *([f"rather than {', '.join(also)}"] if also else []),
        )

    def called(self, role: str, fields: Sequence[Field], measure: Measure, words: str) -> None:
        """Find what is called so, and of which the rows do not say otherwise."""
        named = [each for each in fields if hints.rank(role, each) is not None]
        ordered = sorted(named, key=lambda each: hints.rank(role, each) or 0)
        for each in ordered:
            share = measure(each)
            if share.part and share.value >= NAMED:
                self.give(role, each, *_called(hints.rank(role, each)), f"{share.words} {words}")
                return
        if ordered:
            self.said[role] = [f"{ordered[0].path} is called so, but few of its values {words}"]

    def multiplied(self, roles: tuple[str, str, str], found: Sequence[Product]) -> None:
        """Give quantity, price and amount to fields of which the third is the others' product."""
        quantity, price, amount = roles
        good = [each for each in found if each.share.value >= SURE]
        if not good:
            return
        top = max(good, key=lambda each: (round(each.share.value, 2), self._names(roles, each)))
        rivals = [each.amount for each in good if each.amount != top.amount]
        if rivals and not self._names(roles, top):
            self.said[amount] = [f"{top.amount.path} and {rivals[0].path} are products both"]
            return
        words = f"{top.share.words} rows are {{0}}, to a minor unit of the currency"
        first, second = _ordered(roles, top)
        said = words.format(f"{first.path} x {second.path} = {top.amount.path}")
        self.give(amount, top.amount, said, *_called(hints.rank(amount, top.amount)))
        if _told_apart(roles, top):
            self.give(quantity, first, said, *_called(hints.rank(quantity, first)))
            self.give(price, second, said, *_called(hints.rank(price, second)))
        else:
            self.said[quantity] = self.said[price] = [f"{said}; nothing says which is the price"]

    @staticmethod
    def _names(roles: tuple[str, str, str], product: Product) -> int:
        """Count which of the three are called by their roles."""
        first, second = _ordered(roles, product)
        three = zip(roles, (first, second, product.amount), strict=True)
        return sum(hints.rank(role, each) is not None for role, each in three)


def candidates(role: str, fields: Iterable[Field], measure: Measure) -> list[Candidate]:
    """Measure each of the fields for a role."""
    return [Candidate(each, measure(each), hints.rank(role, each)) for each in fields]


def _as_good(first: Candidate, other: Candidate) -> bool:
    """Tell whether nothing sets the first apart."""
    close = first.share.value - other.share.value < CLOSE
    return close and first.rank == other.rank


def _called(rank: float | None) -> list[str]:
    if rank is None:
        return ["its name says nothing"]
    return ["called so by its description"] if rank >= hints.BY_TEXT else ["called so"]


def _ordered(roles: tuple[str, str, str], product: Product) -> tuple[Field, Field]:
    """Return quantity and price of the factors: by name, else the whole number is a quantity."""
    one, two = product.factors
    quantity, price, _amount = roles
    turned = (hints.rank(quantity, two), hints.rank(price, one))
    right = (hints.rank(quantity, one), hints.rank(price, two))
    if right != turned:
        return (one, two) if _worth(right) <= _worth(turned) else (two, one)
    return (two, one) if two.whole and not one.whole else (one, two)


def _worth(ranks: tuple[float | None, float | None]) -> float:
    return sum(1000 if each is None else each for each in ranks)


def _told_apart(roles: tuple[str, str, str], product: Product) -> bool:
    """Tell whether names or kinds say which factor is the quantity."""
    one, two = product.factors
    ranks = [hints.rank(role, each) for role in roles[:2] for each in (one, two)]
    return one.whole != two.whole or any(each is not None for each in ranks)

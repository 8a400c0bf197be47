"""Kinds of lists: how the rows are ordered and what happens to them while they are read."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from random import Random

from pipelines.extract.pages import Page
from tests.extract.lists import Change, Model, Row

Kind = Callable[[int, int, Random], Model]
EVERY = 10


def ties(size: int, rows: int, limit: int, chance: Random) -> Model:
    all_rows = [Row(key, chance.randrange(1000)) for key in range(rows)]
    return Model([all_rows[at : at + size] for at in range(0, rows, size)], limit, chance)


def stable(rows: int, limit: int, chance: Random) -> Model:
    return ties(1, rows, limit, chance)


def tied(size: int) -> Kind:
    return lambda rows, limit, chance: ties(size or max(1, rows), rows, limit, chance)


def tie(kind: Kind, size: int) -> Kind:
    """Lists of a kind in which each so many rows are a tie."""

    def made(rows: int, limit: int, chance: Random) -> Model:
        model = kind(rows, limit, chance)
        every = range(0, len(model), size)
        return replace(model, groups=[model.rows[at : at + size] for at in every])

    return made


def changing(kind: Kind, change: Change) -> Kind:
    return lambda rows, limit, chance: replace(kind(rows, limit, chance), change=change)


def churn(until: float = 60, every: int = 1, moved: float = 0, **rates: float) -> Change:
    """Add rows at the head, at the tail or between, move and remove rows with these chances."""

    def change(model: Model, number: int) -> None:
        chance = model.chance
        if number % every or number >= until:
            return
        if chance.random() < rates.get("head", 0):
            model.add(0)
        if chance.random() < rates.get("tail", 0):
            model.add(len(model.groups))
        if chance.random() < rates.get("between", 0):
            model.add(chance.randint(0, len(model.groups)))
        if len(model) and chance.random() < moved:
            model.move(chance.randrange(len(model)), chance.randint(0, len(model.groups) - 1))
        if len(model) and chance.random() < rates.get("removed", 0):
            model.pop(chance.randrange(len(model)))

    return change


def cancelling(chance: float, until: float = inf) -> Change:
    """Remove a row that was read and move one there that was not, so that no page shows a shift."""

    def change(model: Model, number: int) -> None:
        reached = min(model.asked[-1][0] + model.limit, len(model))
        if number >= until or reached < 2 or model.chance.random() >= chance:
            return
        model.pop(model.chance.randrange(reached))
        behind = range(reached - 1, len(model))
        if behind:
            model.move(model.chance.choice(behind), model.chance.randint(0, reached - 1))

    return change


def _touch(*, head: bool) -> Change:
    def change(model: Model, _number: int) -> None:
        for _row in range(min(2, len(model))):
            place = 0 if head else len(model.groups)
            model.move(model.chance.randrange(len(model)), place, change=1)

    return change


def _move_once(model: Model, number: int) -> None:
    """Move a single row from the part that is not read yet to the part that is."""
    if number != max(1, model.plain // 2):
        return
    reached = max(offset for offset, _purpose in model.asked) + model.limit
    keys = [row.content if row.key is None else row.key for row in model.rows]
    single = [at for at in range(min(reached, len(keys)), len(keys)) if keys.count(keys[at]) == 1]
    if single:
        model.move(model.chance.choice(single), model.chance.randint(0, reached // 2))


def repeats(*, near: bool, conflict: bool, move: bool = False) -> Kind:
    """Lists of which one row in a hundred is there twice."""

    def kind(rows: int, limit: int, chance: Random) -> Model:
        model = stable(rows, limit, chance)
        is_near = near or rows < 2 * limit
        for key in chance.sample(range(rows), -(-rows // 100)):
            at = next(i for i, group in enumerate(model.groups) if group[0].key == key)
            apart = (
                chance.randint(1, max(1, limit // 2)) if is_near else chance.randint(limit, rows)
            )
            place = at + 1 + apart if at + 1 + apart <= len(model.groups) else max(0, at - apart)
            model.groups.insert(place, [Row(key, model.groups[at][0].content + conflict)])
        return replace(model, change=_move_once) if move else model

    return kind


def _replace_all(model: Model, _number: int) -> None:
    model.groups[:] = [[Row(next(model.new))] for _row in range(len(model))]
    model.added.update(model.rows)


def keyless(kind: Kind, contents: int) -> Kind:
    """Lists without a key, of which most rows are equal; 0 contents: no two rows are."""

    def content(chance: Random) -> int:
        return chance.randrange(contents) if chance.random() < 0.2 else 0

    def made(rows: int, limit: int, chance: Random) -> Model:
        model = kind(rows, limit, chance)
        for row in model.rows:
            row.content = content(chance) if contents else row.key or 0
            row.key = None
        return replace(model, contents=contents)

    return made


def lying(kind: Kind, lie: Callable[[Page], Page], share: float) -> Kind:
    def made(rows: int, limit: int, chance: Random) -> Model:
        def tell(page: Page, model: Model) -> Page:
            return lie(page) if model.chance.random() < share else page

        return replace(kind(rows, limit, chance), lie=tell)

    return made


def _first_rows(page: Page, rows: int) -> Page:
    """Show fewer rows of a page that is not the last."""
    return replace(page, values=page.values[:rows]) if page.has_more else page


LIES: dict[str, Callable[[Page], Page]] = {
    "short": lambda page: _first_rows(page, max(1, len(page) // 2)),
    "ended_early": lambda page: replace(page, has_more=False),
    "endless": lambda page: replace(page, has_more=True),
    "empty": lambda page: _first_rows(page, 0),
    "cut": lambda page: _first_rows(page, max(1, len(page) - 1)),
}


def capped(rows: int, limit: int, chance: Random) -> Model:
    """A list of which nothing is shown from an offset on, as if it ended there."""

    def tell(page: Page, _model: Model) -> Page:
        is_behind = page.request.offset > 2 * rows // 3
        return replace(page, values=page.values[:0], has_more=False) if is_behind else page

    return replace(stable(rows, limit, chance), lie=tell)


class Endless(Model):
    """A list that begins again behind its end."""

    def _rows(self, offset: int, limit: int) -> list[Row]:
        rows = self.rows
        return [rows[place % len(rows)] for place in range(offset, offset + limit) if rows]


def endless(rows: int, limit: int, chance: Random) -> Model:
    groups = stable(rows, limit, chance).groups
    return Endless(groups, limit, chance, lie=lambda page, _model: replace(page, has_more=True))


HIDDEN = -1


class Hiding(Model):
    """A list with places of rows that are on no page."""

    def _rows(self, offset: int, limit: int) -> list[Row]:
        return [row for row in super()._rows(offset, limit) if row.content != HIDDEN]


def hiding(rows: int, limit: int, chance: Random) -> Model:
    """Hide a row in a hundred, but none that the last page could show: it is short anyway."""
    model = stable(rows, limit, chance)
    before_last = range(max(0, rows - 2 * limit))
    for place in chance.sample(before_last, min(len(before_last), -(-rows // 100))):
        model.rows[place].content = HIDDEN
    return Hiding(model.groups, limit, chance)


KINDS: dict[str, Kind] = {
    "rows on no page": hiding,
    "nothing from an offset on": capped,
    "begins again behind its end": endless,
    "stable": stable,
    "one moves": changing(stable, _move_once),
    "head grows": changing(stable, churn(every=2, head=1)),
    "few removals": changing(stable, churn(inf, 3, removed=1)),
    "tail grows": changing(stable, churn(every=2, tail=1)),
    "ties of 2": tied(2),
    "ties of 7": tied(7),
    "ties of 60": tied(60),
    "ties of 700": tied(700),
    "one tie": tied(0),
    "newest change first": changing(stable, _touch(head=True)),
    "newest change last": changing(stable, _touch(head=False)),
    "near repeats": repeats(near=True, conflict=False),
    "far repeats": repeats(near=False, conflict=False),
    "near conflicts": repeats(near=True, conflict=True),
    "far conflicts": repeats(near=False, conflict=True),
    "near repeats, one moves": repeats(near=True, conflict=False, move=True),
    "far conflicts, one moves": repeats(near=False, conflict=True, move=True),
    "near repeats, ties of 7": tie(repeats(near=True, conflict=False), 7),
    "far repeats, ties of 7": tie(repeats(near=False, conflict=False), 7),
    "near conflicts, ties of 7": tie(repeats(near=True, conflict=True), 7),
    "ties of 7, additions": changing(tied(7), churn(300, EVERY, head=1, tail=1)),
    "ties of 7, removals": changing(tied(7), churn(300, EVERY, removed=1)),
    "mixed": changing(stable, churn(head=0.5, tail=0.3, between=0.2, removed=0.5)),
    "changes everywhere": changing(stable, churn(inf, between=0.5, removed=0.5)),
    "moves and removals": changing(stable, churn(inf, moved=0.5, removed=0.5)),
    "few moves and removals": changing(stable, churn(inf, moved=0.1, removed=0.1)),
    "cancelling, few": changing(stable, cancelling(0.1)),
    "cancelling, many": changing(stable, cancelling(0.5, until=20)),
    "mixed and moves": changing(
        stable, churn(head=0.5, tail=0.3, between=0.2, moved=0.1, removed=0.5)
    ),
    "few mixed and moves": changing(
        stable, churn(inf, head=0.1, tail=0.1, between=0.1, moved=0.05, removed=0.2)
    ),
    "new keys": changing(stable, _replace_all),
}
_CHANGES = ("stable", "one moves", "few removals", "head grows", "tail grows")
for _contents in (0, 2, 20, 100):
    for _name in (*_CHANGES, "mixed", "ties of 7"):
        KINDS[f"keyless {_contents}: {_name}"] = keyless(KINDS[_name], _contents)
for _name, _lie in LIES.items():
    for _share in (0.1, 1.0):
        KINDS[f"{_name} {_share}"] = lying(stable, _lie, _share)
    KINDS[f"{_name} in ties"] = lying(tied(7), _lie, 0.2)

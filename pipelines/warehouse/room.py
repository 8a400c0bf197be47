"""How much wider one manifest may make a stream's tables, and what becomes of the rest.

At most so many new columns; fields beyond them stay together in the column `_rest` of their table,
or are left out where the policy says so. Not here: the narrowest shape that holds them (schema).
"""

from dataclasses import dataclass, replace

from pipelines.warehouse.schema import EMPTY, Kind, Shape

MOST_NEW = 500  # columns of a stream that one manifest may add


@dataclass(frozen=True)
class Rules:
    """What a manifest may do to the shape `before` it: `new` columns; `rest` keeps what exceeds.

    `key` identifies a record: there is always room for it. `rekey`: a person said that its column
    may become text.
    """

    before: Shape = EMPTY
    new: int = MOST_NEW
    rest: bool = True
    key: str | None = None
    rekey: bool = False

    def admitted(self, current: Shape, wider: Shape) -> Shape:
        """Return of a wider shape what there is room for beside what the current one has."""
        left = self.new - (columns(current) - columns(self.before))
        room = _Room(left, self.rest)
        key = wider.fields.get(self.key) if self.key is not None else None
        if self.key is not None and key is not None and self.key not in current.fields:
            room.left -= 1
            current = replace(current, fields={**current.fields, self.key: key})
        return room.table(current, wider)


def columns(shape: Shape | None) -> int:
    """Return how many columns a shape has, those of child tables among them."""
    match shape:
        case None:
            return 0
        case Shape(kind=Kind.OBJECT):
            return sum(map(columns, shape.fields.values()))
        case Shape(kind=Kind.ARRAY):
            return 1 + columns(shape.item)
        case _:
            return 1 + (shape.kind is Kind.TIME)


@dataclass
class _Room:
    """The columns that may still be added; `full` where something found no room."""

    left: int
    rest: bool
    full: bool = False

    def table(self, current: Shape, wider: Shape) -> Shape:
        """Return a table's shape; it has a rest where one of its fields found no room."""
        before, self.full = self.full, False
        admitted = self._known(current, wider)
        if self.full and self.rest and admitted.kind is Kind.OBJECT:
            admitted = replace(admitted, rest=True)
        self.full = before
        return admitted

    def _known(self, current: Shape, wider: Shape) -> Shape:
        """Return what is at a path that has its place already."""
        if current.kind is wider.kind is Kind.OBJECT:
            return replace(wider, fields=self._fields(current, wider))
        if current.kind is wider.kind is Kind.ARRAY:
            if wider.item is None or wider.item == current.item:
                return wider
            known = current.item is not None and current.item.kind is not Kind.NULL
            item = self._item(current.item if known else None, wider.item)
            return replace(wider, item=item) if item else replace(current, misfits=True)
        if current.kind is Kind.NULL and wider.kind in {Kind.OBJECT, Kind.ARRAY}:
            return self._new(wider) or replace(current, misfits=True)
        return wider

    def _item(self, current: Shape | None, wider: Shape) -> Shape | None:
        if current is not None and current.kind is not Kind.OBJECT:
            return self._known(current, wider)
        if wider.kind is not Kind.OBJECT:
            return self._new(wider)
        return self.table(current or EMPTY, wider)

    def _fields(self, current: Shape, wider: Shape) -> dict[str, Shape]:
        fields = {}
        for name, each in wider.fields.items():
            known = current.fields.get(name)
            admitted = self._new(each) if known is None else self._known(known, each)
            if admitted is None:
                self.full = True
            else:
                fields[name] = admitted
        return fields

    def _new(self, wider: Shape) -> Shape | None:
        """Return what is at a new path, None where there is no room for it."""
        if wider.kind is Kind.OBJECT and wider.fields:
            fields = self._fields(EMPTY, wider)
            return replace(wider, fields=fields) if fields else None
        cost = 1 + (wider.kind is Kind.TIME)
        if self.left < cost:
            return None
        self.left -= cost
        if wider.kind is Kind.ARRAY and wider.item is not None:
            item = self._item(None, wider.item)
            return None if item is None else replace(wider, item=item)
        return wider

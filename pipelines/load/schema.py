"""The schema of a stream: what is at every path of its records, over all scans.

Here: which places a stream has, their names and tables, made as values come. Not here: the type of
a place (`place.py`), how a version keeps the schema (`schema_table.py`), how values become columns
(`decode.py`, `store.py`), and how earlier rows follow (`reread.py`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from pipelines.config.types import DeclaredType
from pipelines.load.names import MOST_COLUMNS, RefusedNames
from pipelines.load.paths import (
    ENDINGS,
    MAP_NAME,
    TAKEN,
    FieldPath,
    field_of,
    free_name,
    plain_name,
    steps_to_row,
)
from pipelines.load.place import CONTAINER_KINDS, DECLARED_KINDS, OF_ITEMS, SCALARS, Kind, Place
from pipelines.load.records import has_value

ColumnTypes: TypeAlias = dict[tuple[str, str], str]
"""Types of columns of data, by table and name."""


@dataclass
class Schema:
    """The schema of one stream in one scan; without `grows`, it stays as it is.

    `known` are the types of the columns before the scan. `declared` are types of settings, by path.
    `kinds` are those of paths that an earlier reading of the scan took for something else. `shapes`
    counts what new lists and objects are in other records: lists, objects, or (text) neither.
    `maps` are those of objects whose names are data. `new_maps` are those that this scan made one.
    `overflows` says that a field has no column because there are too many.
    """

    stream: str
    grows: bool = True
    decides_again: bool = True
    overflows: bool = False
    known: ColumnTypes = field(default_factory=dict)
    places: dict[FieldPath, Place] = field(default_factory=dict)
    declared: Mapping[str, DeclaredType] = field(default_factory=dict)
    kinds: dict[FieldPath, Kind] = field(default_factory=dict)
    shapes: Counter[tuple[FieldPath, Kind]] = field(default_factory=Counter)
    maps: frozenset[FieldPath] = frozenset()
    new_maps: tuple[FieldPath, ...] = ()
    refused_names: RefusedNames = field(default_factory=RefusedNames)

    def __post_init__(self) -> None:
        self.places[()] = Place((), self.stream, Kind.OBJECT)

    @property
    def tables(self) -> list[Place]:
        """The places that have a table: the record, and the lists and maps in it."""
        return [place for place in self.places.values() if place.is_table]

    def place(self, path: FieldPath, values: Iterable[Any]) -> Place | None:
        """Return the place at a path, made for its first value; None: it has none, or no room."""
        place = self.places.get(path)
        if place is not None or not self.grows:
            return place
        kind = self._first_kind(path, values)
        if kind is None:
            return None
        # Items that are no objects need no column of their own: their list has one.
        needs_column = path[-1] is not None or kind is Kind.OBJECT
        if needs_column and not self._has_room(path):
            self.overflows = True
            self.refused_names.refuse(path, values)
            return None
        place = self._new_place(path, kind)
        self.places[path] = place
        return place

    def _has_room(self, path: FieldPath) -> bool:
        """Return whether a new path may have a column; what a map itself needs always may."""
        if path in self.maps or self.is_of_map(path):
            return True
        if self.overflows:
            return False
        named = [place for place in self.places.values() if place.name and not place.is_item]
        return len(named) < MOST_COLUMNS

    def is_of_map(self, path: FieldPath) -> bool:
        """Return whether a path is that of the rows of a map, of their names or their values."""
        item = path if path[-1] is None else path[:-1]
        if item[-1:] != (None,):
            return False
        holder = self.places.get(item[:-1])
        return holder is not None and holder.kind is Kind.MAP

    def depth(self, path: FieldPath) -> int:
        """Return in how many objects and lists a path is; a name of a map is one step."""
        depth = len(path)
        for end, step in enumerate(path, 1):
            if step is None and self.is_of_map(path[:end]):
                depth -= 1
        return depth

    def misread(self) -> dict[FieldPath, Kind]:
        """Return the right kind of each new list or object that was read as another kind, by path.

        A field is what most of its values are, a list or an object, and `_extra` has the others.
        Where as many are lists as are objects, or some are neither, all are texts. So they are
        where some items of a list are lists, or some values of a map.
        """
        right_kinds = dict[FieldPath, Kind]()
        for path, _ in self.shapes:
            right_kind = self._kind_of_most(path)
            if right_kind is not self.places[path].kind:
                right_kinds[path] = right_kind
        return right_kinds

    def _kind_of_most(self, path: FieldPath) -> Kind:
        kind = self.places[path].kind
        lists = self.shapes[path, Kind.LIST]
        objects = self.shapes[path, Kind.OBJECT]
        if self.shapes[path, Kind.TEXT]:
            return Kind.TEXT
        if lists and (lists == objects or kind is Kind.MAP or path[-1] is None):
            return Kind.TEXT
        if lists > objects and kind is Kind.OBJECT:
            return Kind.LIST
        if objects > lists and kind is Kind.LIST:
            return Kind.OBJECT
        return kind

    def next_map(self) -> FieldPath | None:
        """Return the object below the record whose names are data, to be made a map.

        Its names grow: some were known before and others come. Or its stream has no column left.
        Of several, it is the one with most names, or the outermost such one around it.
        """
        if not self.grows or (self.known and not self.decides_again):
            return None
        members = {}
        for path, place in self.places.items():
            if self._is_member_of_inner_object(path):
                members[path] = place.is_new
        return self.refused_names.object_with_most(members)

    def _is_member_of_inner_object(self, path: FieldPath) -> bool:
        """Return whether a path is that of a member of an object below a record or an item."""
        return len(path) > 1 and None not in path[-2:] and not self.is_of_map(path)

    def _first_kind(self, path: FieldPath, values: Iterable[Any]) -> Kind | None:
        """Return the kind of a new place; any scalar is text until the scan ends."""
        present = [value for value in values if has_value(value)]
        if not present:
            return None
        if field_of(path) in self.declared:
            return Kind.TEXT
        if path in self.kinds:
            return self.kinds[path]
        if path in self.maps:
            return Kind.MAP
        return _kind_of_first(path, present)

    def _new_place(self, path: FieldPath, kind: Kind) -> Place:
        """Return a new place with a name for its column, or for the table of its items."""
        outer = self.places[path[:-1]]
        place = Place(path, outer.table, kind, is_new=True)
        if place.is_table:
            taken = {other.table for other in self.places.values()}
            place.table = free_name(f"{outer.table}__{self._plain_name(outer.path)}", taken)
        else:
            place.name = self._column_name(place, outer)
        if place.is_scalar and not place.is_map_name:
            self._begin_type(place)
        return place

    def _column_name(self, place: Place, outer: Place) -> str:
        """Return a free name for the column of a new place, or nothing if it has none."""
        if place.is_item:
            return outer.name
        if place.path[-1] == MAP_NAME and self.is_of_map(place.path):
            return MAP_NAME
        if place.kind in {Kind.OBJECT, Kind.MAP}:
            return ""
        taken = {TAKEN}
        for other in self.places.values():
            if other.table == outer.table:
                taken.update(other.name + ending for ending in ENDINGS)
        return free_name(self._plain_name(place.path), taken)

    def _begin_type(self, place: Place) -> None:
        """Say what a new scalar may turn out to be: its declared type, or all that is possible."""
        place.declared = self.declared.get(field_of(place.path))
        if place.declared is not None:
            place.kind = DECLARED_KINDS[place.declared.type]
        elif place.path not in self.kinds:
            place.candidates = OF_ITEMS if place.is_item else SCALARS

    def _plain_name(self, path: FieldPath) -> str:
        """Return the name of a column or table; a member of the values of a map has its own."""
        start = steps_to_row(path)
        is_inside_map_value = len(path) > start + 1 and self.is_of_map(path[: start + 1])
        if is_inside_map_value:
            return plain_name(path[start + 1 :])
        return plain_name(path)

    def discards(self, path: FieldPath) -> bool:
        """Whether a value at a path that has no column is not even kept in `_extra`."""
        return not self.grows and path not in self.places

    def decide(self, forbids: Callable[[Place, Kind], bool]) -> None:
        """Settle the types of all columns, at the end of a scan; see `Place.decide`."""
        for place in self.places.values():
            if place.is_new or self.decides_again or place.kind is not Kind.TEXT:
                place.decide(forbids)

    def snapshot(self) -> "Schema":
        """Return a copy that does not grow with this schema."""
        return replace(
            self,
            places={path: place.copy() for path, place in self.places.items()},
            shapes=self.shapes.copy(),
            refused_names=self.refused_names.copy(),
        )

    def restore(self, before: "Schema") -> None:
        """Forget what came since a snapshot was made."""
        self.places = before.places
        self.overflows = before.overflows
        self.shapes = before.shapes
        self.refused_names = before.refused_names

    def columns_of(self, table: str) -> dict[str, Place]:
        """Return the places that a table has columns of values for, by name of the column."""
        places = {}
        for place in self.places.values():
            if place.is_scalar and place.table == table:
                places[place.name] = place
        return places

    def column_names(self, table: str) -> list[str]:
        """Return the names of all columns of data of a table."""
        return [name for owner, name in self.types if owner == table]

    @property
    def types(self) -> ColumnTypes:
        """The types of the columns of data."""
        types = ColumnTypes()
        for place in self.places.values():
            for _, name, column_type in place.columns():
                types[place.table, name] = column_type
        return types

    @property
    def new_types(self) -> ColumnTypes:
        """The columns that are new or have another type than before the scan."""
        new_types = ColumnTypes()
        for column, column_type in self.types.items():
            if self.known.get(column) != column_type:
                new_types[column] = column_type
        return new_types


def _kind_of_first(path: FieldPath, values: Sequence[Any]) -> Kind:
    """Return the kind of the first value of a new place."""
    # An empty list is sent for an empty object, too: what has members says more.
    with_members = (value for value in values if value != [])
    first = next(with_members, values[0])
    # A list in a list has no columns.
    if type(first) is list and path[-1] is None:
        return Kind.TEXT
    return CONTAINER_KINDS.get(type(first), Kind.TEXT)

"""Names of members: how many columns they may have, and which objects have names that are data."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pipelines.load.paths import FieldPath

# Columns of a stream. An object with a name for each day took all of them, so that period and
# amount had none (docs/decisions.md, "Names that are data").
MOST_COLUMNS: Final = 500
# Names that an object below the record has at most, unless they never grow.
MANY_NAMES: Final = 100


@dataclass
class RefusedNames:
    """The names of members that have no column because the stream has too many, by object."""

    by_object: dict[FieldPath, set[str | None]] = field(default_factory=lambda: defaultdict(set))

    def refuse(self, path: FieldPath, values: Iterable[Any]) -> None:
        """Note the path of values that have no column."""
        self._add(path[:-1], [path[-1]])
        for value in values:
            if type(value) is dict:
                self._add(path, value)

    def _add(self, outer: FieldPath, names: Iterable[str | None]) -> None:
        refused = self.by_object[outer]
        # More names than this make a map. How many more there are does not matter.
        if len(refused) <= MANY_NAMES:
            refused.update(names)

    def object_with_most(self, members: Mapping[FieldPath, bool]) -> FieldPath | None:
        """Return the object with most names that are data, or the outermost such one around it.

        `members` are the paths of members that have columns; whether each is new in this scan.
        """
        counts = self._count_names(members)
        large = [outer for outer, count in counts.items() if count > MANY_NAMES]
        # Many names that never grow are fields of one thing. But where no column is left, the
        # object with most names takes them from fields.
        if not self.by_object:
            growing = _growing_objects(members)
            large = [outer for outer in large if outer in growing]
        if not large:
            return None
        most = max(large, key=counts.__getitem__)
        around = [outer for outer in large if most[: len(outer)] == outer]
        return min(around, key=len)

    def _count_names(self, members: Iterable[FieldPath]) -> Counter[FieldPath]:
        """Count names with and without a column, by object."""
        counts = Counter(path[:-1] for path in members)
        for outer, names in self.by_object.items():
            is_record_or_item = not outer or outer[-1] is None
            if not is_record_or_item:
                counts[outer] += len(names)
        return counts

    def copy(self) -> "RefusedNames":
        """Return a copy that shares nothing."""
        copy = RefusedNames()
        for outer, names in self.by_object.items():
            copy.by_object[outer] = {*names}
        return copy


def _growing_objects(members: Mapping[FieldPath, bool]) -> set[FieldPath]:
    """Return the objects of which some members were known before and others are new."""
    has_known = {path[:-1] for path, is_new in members.items() if not is_new}
    has_new = {path[:-1] for path, is_new in members.items() if is_new}
    return has_known & has_new

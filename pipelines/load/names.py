"""Names of members: how many columns they may have, and which objects have names that are data."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

MOST_COLUMNS: Final = 500  # of a stream
MANY_NAMES: Final = 100  # that an object below the record has at most, unless they never grow
MAP_NAME: Final = "_name"  # of a row of a map; no column of data begins with _
MAP_VALUE: Final = "value"
Path: TypeAlias = tuple[str | None, ...]
"""Names of members from the record inwards; None stands for the items of a list.

A map, an object whose names are data, is stored as a list of items with a name and a value.
"""


@dataclass
class Names:
    """The names of members that have no column because the stream has too many, by object."""

    refused: dict[Path, set[str | None]] = field(default_factory=lambda: defaultdict(set))

    def refuse(self, path: Path, values: Iterable[Any]) -> None:
        """Note the path of values that have no column."""
        self._add(path[:-1], [path[-1]])
        for each in values:
            if type(each) is dict:
                self._add(path, each)

    def _add(self, outer: Path, names: Iterable[str | None]) -> None:
        found = self.refused[outer]
        if len(found) <= MANY_NAMES:  # how many more there are does not matter
            found.update(names)

    def crowded(self, members: Mapping[Path, bool]) -> Path | None:
        """Return the object with most names that are data, or the outermost such one around it.

        `members` are the paths of members that have columns; whether each is new in this scan.
        """
        counts, known, new = Counter[Path](), set[Path](), set[Path]()
        for path, is_new in members.items():
            counts[path[:-1]] += 1
            (new if is_new else known).add(path[:-1])
        for outer, names in self.refused.items():
            if outer and outer[-1] is not None:
                counts[outer] += len(names)
                new.add(outer)
        grown = [each for each in counts if self.refused or (each in known and each in new)]
        many = [each for each in grown if counts[each] > MANY_NAMES]
        most = max(many, key=lambda each: counts[each], default=None)
        if most is None:
            return None
        return min((each for each in many if most[: len(each)] == each), key=len)

    def copy(self) -> "Names":
        """Return a copy that shares nothing."""
        copy = Names()
        copy.refused.update((outer, {*names}) for outer, names in self.refused.items())
        return copy

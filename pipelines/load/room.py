"""How many columns a stream may have, and which fields get them."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

MOST_COLUMNS: Final = 500
MANY_NAMES: Final = 100  # of an object below the record: then they may be data, such as days
MOST_OF_NAMES: Final = 300  # columns of a stream, from which on such an object gets no more
Path: TypeAlias = tuple[str | None, ...]


@dataclass
class Room:
    """Decides which new fields get a column; `full` are the objects that get no more.

    Names that are data would take the columns of other fields, such as the amount. So columns of an
    object with many names do not count for fields outside of it.
    """

    full: set[Path] = field(default_factory=set)

    def has(self, path: Path, columns: Collection[Path], known: Iterable[Path]) -> bool:
        """Return whether a path that is not `known` gets a column beside those that there are."""
        outer = path[:-1]
        if outer in self.full:
            return False
        crowded = _crowded(known)
        others = [each for each in columns if not _is_within(each, crowded)]
        has_room = len(others) < MOST_COLUMNS
        if _is_within(path, crowded):
            has_room = len(columns) < MOST_OF_NAMES
        if not has_room:
            self.full.add(outer)
        return has_room


def _crowded(known: Iterable[Path]) -> set[Path]:
    """Return the objects below a record, or below an item of a list, that have many names."""
    names = Counter(each[:-1] for each in known if each)
    many = (each for each, count in names.items() if count >= MANY_NAMES)
    return {each for each in many if each and each[-1] is not None}


def _is_within(path: Path, objects: set[Path]) -> bool:
    return any(path[:end] in objects for end in range(1, len(path)))

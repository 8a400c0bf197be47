"""One scan as the server knows it: what happened to a list between its first page and its end.

Here: the record of changes. Not here: the list (changes).
"""

from dataclasses import dataclass, field


@dataclass
class Scan:
    """What befell a list's records since the first page after the scan was opened.

    The changes before that page belong to the state that the scan begins with.
    """

    number: int
    list: str
    begun: bool = False
    inserted: set[int] = field(default_factory=set)
    deleted: set[int] = field(default_factory=set)
    moved: set[int] = field(default_factory=set)
    duplicated: set[int] = field(default_factory=set)
    updated: set[int] = field(default_factory=set)

    def begin(self) -> None:
        """Begin with the page that is read now, unless it has begun."""
        self.begun = True

    def note(self, kind: str, index: int) -> None:
        """Note a change to the record of an index."""
        if not self.begun:
            return
        noted = {
            "insert": self.inserted,
            "delete": self.deleted,
            "move": self.moved,
            "duplicate": self.duplicated,
            "update": self.updated,
        }
        noted[kind].add(index)

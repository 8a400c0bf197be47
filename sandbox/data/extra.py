"""Extra bills: void, draft and cancelled bills, and credit notes, each of one group.

Here: which groups have one in ordinary data, and the place of every bill in the list. An extra bill
follows the bill of its group. Not here: its record (billing), the planted ones (plant).
"""

from dataclasses import dataclass

VOID, DRAFT, CANCELLED, CREDIT_NOTE = "void", "draft", "cancelled", "credit_note"
EVERY = 20  # one group in so many has an extra bill
KINDS = (VOID, CREDIT_NOTE, DRAFT, VOID, CANCELLED)  # in turn


def _chosen(block: int) -> int:
    return block * EVERY + block * 7 % EVERY


@dataclass(frozen=True)
class Extras:
    """The extra bills of ordinary data; none in awkward data."""

    awkward: bool = False

    def of(self, group: int) -> str:
        """Give the kind of a group's extra bill, empty if it has none."""
        block = group // EVERY
        found = not self.awkward and group == _chosen(block)
        return KINDS[block % len(KINDS)] if found else ""

    def count(self, groups: int) -> int:
        """Give the number of bills of the first groups: the place of the next group's bill."""
        block = groups // EVERY
        return groups if self.awkward else groups + block + (groups > _chosen(block))

    def at(self, place: int) -> tuple[int, str]:
        """Give the group of the bill at a place, and its kind if it is an extra bill."""
        if self.awkward:
            return place, ""
        block = place // (EVERY + 1)
        behind = place - block - _chosen(block)
        group = place - block - (behind > 0)
        return group, self.of(group) if behind == 1 else ""

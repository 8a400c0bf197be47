"""Keys seen: every one is found where it was read, however many there are, in little memory."""

from random import Random

import pytest

from pipelines.api.seen import LARGEST, RECENT, Seen, mark


@pytest.mark.parametrize("rows", [0, 1, RECENT - 1, RECENT, 3 * RECENT + 7, 60_000])
def test_every_mark_is_found_in_every_place(rows: int) -> None:
    """In pages of a random size; each third key stands twice."""
    chance, seen, place = Random(rows), Seen(), 0
    expected: dict[bytes, list[int]] = {}
    while place < rows:
        page = []
        for _row in range(min(chance.randint(1, 500), rows - place)):
            each = mark(b"%d" % (place // 2 if place % 3 == 0 else place + rows))
            expected.setdefault(each, []).append(place)
            page.append((place, each))
            place += 1
        seen.add(page)
    asked = chance.sample(list(expected), min(len(expected), 2_000))
    found = seen.find(asked)
    assert [sorted(places) for places in found] == [expected[each] for each in asked]
    strangers = [mark(b"x%d" % number) for number in range(100)]
    assert seen.find([None, *strangers]) == [()] * 101


def test_marks_that_share_64_bits_are_two() -> None:
    seen = Seen()
    alike = [b"8 bytes." + tail for tail in (b"aaaa", b"bbbb")]
    others = [(place, mark(b"%d" % place)) for place in range(2, RECENT + 2)]
    seen.add([(0, alike[0]), (1, alike[1]), *others])
    assert seen.find([*alike, b"8 bytes.cccc"]) == [(0,), (1,), ()]


def test_it_takes_16_bytes_a_row() -> None:
    seen = Seen()
    for start in range(0, 4 * LARGEST, RECENT):
        seen.add((place, mark(b"%d" % place)) for place in range(start, start + RECENT))
    runs = seen._runs
    taken = sum(run.digests.nbytes + run.checks.nbytes + run.places.nbytes for run in runs)
    assert taken == 16 * 4 * LARGEST
    assert len(runs) <= 8
    assert max(len(run) for run in runs) <= LARGEST

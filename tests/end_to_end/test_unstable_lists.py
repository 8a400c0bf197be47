"""Lists that do not stand still, over HTTP: what a sync makes of them in two nights.

The table of docs/completeness.md, at three seeds; each night is held against the sandbox's truth.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.state.proof import Grade
from tests.end_to_end.unstable import (
    PLAIN,
    Case,
    Loaded,
    Night,
    Truth,
    night,
    served,
    watched,
)
from tests.sandbox.running import Running

SEEDS = (1, 2, 3)
WHOLE = frozenset({Grade.COMPLETE})
COUNTED = frozenset({Grade.COMPLETE_BY_COUNT})
PARTIAL = frozenset({Grade.PARTIAL})
EITHER = WHOLE | COUNTED


def fault(name: str, value: float | None = None, **scope: Any) -> dict[str, Any]:
    """Return what switches a fault on."""
    return {"name": name, **({} if value is None else {"value": value}), **scope}


TIES = fault("ties", 7)
MOVED = tuple(
    fault("moved-row", path=f"/v2/{name}", after=after, times=1)
    for name, after in (("partners", 1), ("usage", 4), ("billing", 3))
)
QUICK = (
    Case("1 % twice, next to each other", WHOLE, 2.5, (fault("repeated-rows-near"),)),
    Case("1 % with other values, far", WHOLE, 2.5, (fault("conflicting-rows"),)),
    Case("has_more false too soon", EITHER | PARTIAL, 25, (fault("false-end"),)),
)
CASES = (
    *QUICK,
    *(Case(f"ties of {n}", COUNTED, 7, (fault("ties", n),), again=6) for n in (2, 7, 60)),
    *(Case(f"ties of {n}", COUNTED | PARTIAL, 25, (fault("ties", n),)) for n in (700, 6000)),
    Case("newest change last", EITHER, 7, (fault("last-change"),)),
    Case("newest change first", EITHER, 7, (fault("last-change-first"),)),
    Case("1 % twice, far", WHOLE, 2.5, (fault("repeated-rows"),)),
    Case("1 % with other values, near", WHOLE, 2.5, (fault("conflicting-rows-near"),)),
    Case("1 % twice, far, one moves", EITHER, 7, (fault("repeated-rows"), *MOVED)),
    Case("1 % twice, near, one moves", EITHER, 7, (fault("repeated-rows-near"), *MOVED)),
    Case("ties, rows added", COUNTED, 12, (TIES,), {"insert": 0.2, "where": "ends"}),
    Case("ties, rows removed", COUNTED | PARTIAL, 25, (TIES,), {"delete": 0.1}),
    Case("ties, 1 % twice, near", COUNTED, 7, (TIES, fault("repeated-rows-near"))),
    Case("ties, 1 % twice, far", COUNTED | PARTIAL, 25, (TIES, fault("repeated-rows"))),
    Case("new keys", PARTIAL, 25, (fault("new-keys"),), invented=True),
    Case("a short page", PARTIAL, 25, (fault("short-page"),)),
    Case("places without rows", PARTIAL, 25, (fault("hidden-rows"),)),
    Case("has_more false now and then", EITHER | PARTIAL, 25, (fault("false-end", every=3),)),
    Case("has_more true at the end", PARTIAL, 25, (fault("endless"),)),
    Case("pages never end", PARTIAL, 25, (fault("never-ending"),)),
    Case(
        "pages never end, new keys",
        PARTIAL,
        25,
        (fault("never-ending"), fault("new-keys")),
        invented=True,
    ),
)


@pytest.fixture(scope="module", params=SEEDS)
def running(request: pytest.FixtureRequest) -> Iterator[Running]:
    with served(request.param) as one:
        yield one


@pytest.fixture(scope="module")
def first() -> Iterator[Running]:
    with served(SEEDS[0]) as one:
        yield one


@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.name)
def test_some_lists_that_do_not_stand_still(first: Running, tmp_path: Path, case: Case) -> None:
    nights = two_nights(first, tmp_path, case)
    assert {each.exit_code for each in nights} <= {grade.exit_code for grade in case.grades}


@pytest.mark.trial
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_row_is_lost_or_doubled_and_no_claim_is_false(
    running: Running, tmp_path: Path, case: Case
) -> None:
    nights = two_nights(running, tmp_path, case)
    assert {each.exit_code for each in nights} <= {grade.exit_code for grade in case.grades}


def two_nights(running: Running, folder: Path, case: Case) -> list[Night]:
    """Let a case befall a sandbox, sync twice, and judge both nights."""
    case.begin(running)
    with watched(running) as both:
        nights = [night(running, folder / "home") for _ in range(2)]
    for each, most in zip(nights, (case.most, case.again or case.most), strict=True):
        judge(each, case)
        assert each.requests <= most * PLAIN
    for name, loaded in nights[1].lists.items():
        judge_again(loaded, both[name])
    return nights


def judge(each: Night, case: Case) -> None:
    """Judge what a night came to: what it says is true, and what it loaded is there."""
    for name, loaded in each.lists.items():
        proof = loaded.proof
        assert proof.grade in case.grades, (name, proof)
        assert loaded.doubled == 0, name
        assert case.invented or not loaded.invented, name
        if proof.grade is Grade.PARTIAL:
            judge_partial(loaded, case)
        else:
            assert not loaded.lost, (name, len(loaded.lost))
            assert proof.repeats == len(loaded.repeated), name
        assert loaded.recorded == (proof.grade, proof.repeats), name
        assert loaded.aside == len(loaded.truth["conflicting"]), name
    worst = max(loaded.proof.grade.exit_code for loaded in each.lists.values())
    assert each.exit_code == worst


def judge_partial(loaded: Loaded, case: Case) -> None:
    """Judge a list that is not proven: no number that it names is false."""
    proof = loaded.proof
    assert proof.reason
    assert f"{proof.rows:,}" in proof.sentence("list")
    if case.grades >= COUNTED:  # a list that the count may not get the better of
        assert proof.places is not None
        assert f"{proof.places:,}" in proof.sentence("list")
    if proof.not_seen is not None:
        assert proof.not_seen == len(loaded.lost)


def judge_again(loaded: Loaded, both: Truth) -> None:
    """Judge a second night: what counts as missing was removed, what was restated had changed."""
    changed, removed = frozenset(loaded.truth["revised"]), frozenset(both["delete"])
    assert loaded.absent <= removed
    assert loaded.ended <= changed | removed
    assert loaded.fold.missing <= len(removed)
    assert loaded.fold.restated + loaded.fold.changed <= len(changed)

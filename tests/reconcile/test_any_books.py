"""Random changes to balanced books: each difference is one of meaning, and none is hidden."""

from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.effort import EFFORT
from tests.reconcile.any_books import CHANGES, Books, Odd, Spelling, balanced, make_odd
from tests.reconcile.any_model import Model, MonthModel, said
from tests.reconcile.books import MAPPING, publish
from tests.versions.homes import Stores

BY_USAGE = f'time_zone = "America/Sao_Paulo"\n{MAPPING}'.replace(
    'counted_statuses = ["paid"]', 'counted_statuses = ["paid"]\nother_statuses = ["void", "draft"]'
).replace('updated = "updated"\n', "")
BY_MONTH = BY_USAGE.replace('line_usage = "lines[].usage"\n', "")
PARTNERS = 24
ANY = {name: {"max_deleted_share": 1, "allow_empty": True} for name in ("usage", "billing")}
BREAKS = """
SELECT breaks.rule, breaks.partner, strftime(breaks.month, '%Y-%m'), breaks.currency,
    breaks.difference, breaks.uncertain
FROM reconciliation.breaks AS breaks
WHERE breaks.gone_at IS NULL AND breaks.rule <> 'disappeared'
"""
MONTHS = """
SELECT months.partner, strftime(months.month, '%Y-%m'), months.currency, months.used_amount,
    if(months.billed_amount IS NULL AND months.credited_amount IS NULL, NULL,
        coalesce(months.billed_amount, 0) + coalesce(months.credited_amount, 0)), months.verdict
FROM reconciliation.summary AS months
WHERE months.used_rows > 0 OR months.bills > 0 OR months.credited_amount IS NOT NULL
"""
USED = """
SELECT used.id, used.partner, strftime(used.month, '%Y-%m'), used.currency, used.quantity,
    used.amount, used.unread IS NOT NULL
FROM temp.used AS used
"""


def change(chance: Random, books: Books, seed: int) -> Books:
    """Return books with another meaning, with a value that says nothing, or as they were."""
    changed = books.copied()
    kind = chance.randrange(4)
    if kind < 2:
        chance.choice(CHANGES)(changed, chance)
    elif kind == 2:
        make_odd(changed, chance, is_first=seed % 2 == 0, any_partner=seed % 4 == 3)
    return changed


def check(stores: Stores, books: list[Books], model: Model) -> None:
    rules = "SELECT rule FROM reconciliation.rules WHERE NOT evaluated AND rule <> 'receivables'"
    without_lines = [("unreferenced",), ("billed_twice",)]
    assert stores.rows(rules) == (without_lines if isinstance(model, MonthModel) else [])
    assert {*stores.rows(USED)} == {_used(each) for one in books for each in one.usage}
    found = Counter(stores.rows(BREAKS))
    assert found == Counter((*each, None) for each in model.breaks.elements())
    months = {row[:3]: row[3:] for row in stores.rows(MONTHS)}
    sums = model.sums()
    assert months == {cell: (*each, model.verdict(cell, each)) for cell, each in sums.items()}


def _used(each: Any) -> tuple[Any, ...]:
    parts = [each.partner, each.month, each.currency, each.quantity, each.amount]
    return (each.id, *map(said, parts), any(isinstance(part, Odd) for part in parts))


def run(folder: Path, seed: int, *, by_month: bool) -> None:
    chance = Random(seed)
    names = [str(100 + at) for at in range(PARTNERS)]
    before = [balanced(chance, name) for name in names]
    after = [change(chance, each, seed) for each in before]
    stores = Stores.open(folder / f"home{seed}", streams=ANY)
    for books in ([before] if seed % 2 else []) + [after]:
        spelling = Spelling(chance)
        publish(
            stores,
            mapping=BY_MONTH if by_month else BY_USAGE,
            partners=[spelling.partner(name) for name in names],
            usage=[spelling.used(each) for one in books for each in one.usage],
            billing=[spelling.bill(each) for one in books for each in one.bills],
        )
    check(stores, after, (MonthModel if by_month else Model)(after, {*names}))
    stores.metadata.close()


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_every_difference_is_one_of_meaning() -> None:
    for seed in range(3 * EFFORT):
        with TemporaryDirectory() as folder:
            try:
                run(Path(folder), seed, by_month=seed % 3 == 2)
            except Exception as error:
                raise AssertionError(f"seed {seed}") from error

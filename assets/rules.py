"""Asset checks of `published/warehouse`, one for each rule that finds breaks.

Derived from the shelf: a new rule is a new check. A rule that was not evaluated does not pass. Not
here: the breaks themselves (`partner-sync breaks`, `reconciliation.breaks`).
"""

from collections.abc import Iterator, Sequence

import dagster as dg

from assets.checks import ERROR, WARN, Check, Numbers
from assets.previews import preview
from assets.published import KEY
from assets.resources import patient
from pipelines import run
from pipelines.reconciliation import RULES
from pipelines.run import Judged
from pipelines.settings import load

CHECKS = {
    rule.name: Check(rule.name, rule.question, rule.means, rule.remedy)
    for rule in RULES
    if rule.severity
}


@dg.multi_asset_check(
    name="rules", specs=[check.spec(KEY) for check in CHECKS.values()], can_subset=True
)
def rules(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
    """Look at what each rule found in what is published."""
    wanted, loaded = {key.name for key in context.selected_asset_check_keys}, load()
    with patient(context, loaded):
        found = run.judged(loaded.place)
    yield from (each for each in results(found) if each.check_name in wanted)


def results(found: Sequence[Judged]) -> Iterator[dg.AssetCheckResult]:
    """Pass where a rule was evaluated and no break of it is open."""
    for each in found:
        check = CHECKS[each.rule.name]
        numbers: Numbers = {
            "open breaks": each.breaks,
            "artefacts": each.artefacts,
            **({"not evaluated": each.unsaid} if each.unsaid else {}),
            **({"differences": preview(each.sums)} if each.sums else {}),
        }
        passed = not each.breaks and not each.unsaid
        yield check.result(KEY, numbers, passed=passed, severity=ERROR if each.grave else WARN)


OWN = [rules] if load().reconcile else []  # without reconciliation there is nothing to look at

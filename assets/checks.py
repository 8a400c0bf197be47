"""Asset checks: every check of the catalogue, over all connections, and every reconciliation rule.

A check result of Dagster has no partition, so the checks stand on the assets without partitions.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

import dagster as dg

from assets.keys import PUBLISHED, reconciliation_key, table_key
from pipelines.checks.catalogue import CHECKS, CheckResult, State
from pipelines.checks.published import Published
from pipelines.config.settings import Settings
from pipelines.core.finding import Severity
from pipelines.finance.reconcile.statements import RULES, read_statement

MOST_SHOWN = 20
BREAKS = reconciliation_key("breaks")
SHOW_BREAKS = "partner-sync breaks --rule {rule}"


def check_specs(settings: Settings) -> Iterator[dg.AssetCheckSpec]:
    """Yield what Dagster shows of each check before it is evaluated."""
    for check in CHECKS:
        for stream in settings.streams if check.scope == "list" else [""]:
            remedy = check.remedy.format(connection="CONNECTION", stream=stream)
            yield dg.AssetCheckSpec(
                check.code,
                asset=_asset(stream),
                description=f"{check.question}\n\nIf it fails: {remedy}",
            )
    for rule in RULES:
        statement = read_statement(rule)
        description = f"{statement.question}\n\nIf it fails: {SHOW_BREAKS.format(rule=rule)}"
        yield dg.AssetCheckSpec(rule, asset=BREAKS, description=description)


def _asset(stream: str) -> dg.AssetKey:
    return table_key(stream) if stream else PUBLISHED


def check_results(
    keys: AbstractSet[dg.AssetCheckKey], results: Sequence[CheckResult], published: Published
) -> Iterator[dg.AssetCheckResult]:
    """Yield one result for each selected check: it passes only if it passes for each connection.

    A check of a list that no connection reads yields nothing and stays unevaluated.
    """
    for key in sorted(keys):
        own = [
            each
            for each in results
            if (_asset(each.about.stream), each.check.code) == (key.asset_key, key.name)
        ]
        if own:
            yield _combine(key, own)
        elif key.asset_key == BREAKS:
            yield _rule_result(key.name, published)


def _combine(key: dg.AssetCheckKey, results: list[CheckResult]) -> dg.AssetCheckResult:
    bad = [each for each in results if each.state is not State.PASSED]
    notes = [each for each in results if each not in bad]
    lines = [line for each in bad + notes for line in _lines(each)]
    is_error = results[0].check.severity is Severity.ERROR
    return dg.AssetCheckResult(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=not bad,
        severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
        description="\n".join(lines[:MOST_SHOWN]) or None,
        metadata={state: sum(each.state is state for each in results) for state in State},
    )


def _rule_result(rule: str, published: Published) -> dg.AssetCheckResult:
    """Return whether a rule has no open break; it fails where that is not known.

    It is not where a record cannot be read.
    """
    reason = "The published version is not reconciled."
    if published.not_evaluated is not None:
        reason = published.not_evaluated.get(rule, "")
    found = [each for each in published.open_breaks if each["rule"] == rule and not reason]
    lines = [
        f"{each['breaks']:,} open breaks: {each['difference'] or 0:,} {each['currency']}."
        for each in found
    ]
    lines += [f"Not known: {each.message}" for each in published.unread]
    notes = [each.message for each in published.notes if each.subject == rule]
    remedy = SHOW_BREAKS.format(rule=rule)
    if reason:
        lines.append(f"Not known. {reason}")
    return dg.AssetCheckResult(
        asset_key=BREAKS,
        check_name=rule,
        passed=not lines,
        severity=dg.AssetCheckSeverity.WARN,
        description="\n".join([*lines, *notes, *([remedy] if lines else [])]) or None,
        metadata={} if reason else {"open breaks": sum(each["breaks"] for each in found)},
    )


def _lines(result: CheckResult) -> list[str]:
    subject = "/".join(filter(None, result.about)) or "warehouse"
    if result.state is State.UNKNOWN:
        return [f"{subject}: not known. {result.reason}"]
    return [f"{subject}: {each.message} {each.remedy}".strip() for each in result.findings]

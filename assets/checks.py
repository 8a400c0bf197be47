"""Asset checks: every check of the catalogue, over all connections, and every reconciliation rule.

A check result of Dagster has no partition, so the checks stand on the assets without partitions.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

import dagster as dg

from assets.names import Names
from pipelines.checks.catalogue import CHECKS
from pipelines.checks.check import CheckResult, State
from pipelines.checks.published import Published
from pipelines.config.settings import Settings
from pipelines.core.finding import Severity
from pipelines.finance.reconcile.statements import RULES, read_statement
from pipelines.finance.reports.alerts import Alerts, OpenBreaks

# Lines of a description: a check of each list can find something in hundreds of connections.
MOST_SHOWN = 20
SHOW_BREAKS = "partner-sync breaks --rule {rule}"


def check_specs(names: Names, settings: Settings) -> Iterator[dg.AssetCheckSpec]:
    """Yield what Dagster shows of each check before it is evaluated."""
    for check in CHECKS:
        streams = settings.streams if check.scope == "list" else [""]
        for stream in streams:
            remedy = check.remedy.format(connection="CONNECTION", stream=stream)
            yield dg.AssetCheckSpec(
                check.code,
                asset=_asset(names, stream),
                description=f"{check.question}\n\nIf it fails: {remedy}",
            )
    for rule in RULES:
        statement = read_statement(rule)
        description = f"{statement.question}\n\nIf it fails: {SHOW_BREAKS.format(rule=rule)}"
        breaks = names.reconciliation("breaks")
        yield dg.AssetCheckSpec(rule, asset=breaks, description=description)


def _asset(names: Names, stream: str) -> dg.AssetKey:
    return names.table(stream) if stream else names.published


def check_results(
    names: Names,
    keys: AbstractSet[dg.AssetCheckKey],
    results: Sequence[CheckResult],
    published: Published,
) -> Iterator[dg.AssetCheckResult]:
    """Yield one result for each selected check: it passes only if it passes for each connection.

    A check of a list that no connection reads yields nothing and stays unevaluated.
    """
    results_of = defaultdict[dg.AssetCheckKey, list[CheckResult]](list)
    for result in results:
        key = dg.AssetCheckKey(_asset(names, result.about.stream), result.check.code)
        results_of[key].append(result)
    for key in sorted(keys):
        if key in results_of:
            yield _combine(key, results_of[key])
        elif key.asset_key == names.reconciliation("breaks"):
            yield _rule_result(key, published.alerts)


def _combine(key: dg.AssetCheckKey, results: list[CheckResult]) -> dg.AssetCheckResult:
    """Return one result for all connections; what has not passed is described first."""
    not_passed = [result for result in results if result.state is not State.PASSED]
    passed = [result for result in results if result.state is State.PASSED]
    lines = list[str]()
    for result in not_passed + passed:
        lines += _lines(result)
    # All results are of one check, so they have one severity.
    severity = dg.AssetCheckSeverity.WARN
    if results[0].check.severity is Severity.ERROR:
        severity = dg.AssetCheckSeverity.ERROR
    states = [result.state for result in results]
    return dg.AssetCheckResult(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=not not_passed,
        severity=severity,
        description="\n".join(lines[:MOST_SHOWN]) or None,
        metadata={state: states.count(state) for state in State},
    )


def _rule_result(key: dg.AssetCheckKey, alerts: Alerts | None) -> dg.AssetCheckResult:
    """Return whether a rule has no open break; it fails where that is not known.

    It is not where a record cannot be read, or where there are no books (`alerts` None).
    """
    rule = key.name
    if alerts is None:
        return _rule_failed(key, ["Not known. The published version is not reconciled."], {})
    metadata = dict[str, int]()
    problems = list[str]()
    reason = alerts.not_evaluated.get(rule)
    if reason is None:
        open_breaks = [row for row in alerts.open_breaks if row.rule == rule]
        metadata["open breaks"] = sum(row.breaks for row in open_breaks)
        problems += [_open_breaks_text(row) for row in open_breaks]
    problems += [f"Not known: {doubt.message}" for doubt in alerts.unread]
    if reason is not None:
        problems.append(f"Not known. {reason}")
    notes = [note.message for note in alerts.notes if note.subject == rule]
    if problems:
        return _rule_failed(key, [*problems, *notes], metadata)
    return dg.AssetCheckResult(
        asset_key=key.asset_key,
        check_name=rule,
        passed=True,
        severity=dg.AssetCheckSeverity.WARN,
        description="\n".join(notes) or None,
        metadata=metadata,
    )


def _rule_failed(
    key: dg.AssetCheckKey, lines: list[str], metadata: dict[str, int]
) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        description="\n".join([*lines, SHOW_BREAKS.format(rule=key.name)]),
        metadata=metadata,
    )


def _open_breaks_text(row: OpenBreaks) -> str:
    difference = row.difference or 0
    return f"{row.breaks:,} open breaks: {difference:,} {row.currency or 'no currency'}."


def _lines(result: CheckResult) -> list[str]:
    """Return what a check says of one connection: why it is not known, or its findings."""
    subject = "/".join(filter(None, result.about)) or "warehouse"
    if result.state is State.UNKNOWN:
        return [f"{subject}: not known. {result.reason}"]
    return [f"{subject}: {finding.message} {finding.remedy}".strip() for finding in result.findings]

"""Asset checks: every check of the catalogue, over all connections.

A check result of Dagster has no partition, so the checks stand on the assets without partitions.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

import dagster as dg

from assets.keys import PUBLISHED, table_key
from pipelines.checks.catalogue import CHECKS, CheckResult, State
from pipelines.config.settings import Settings
from pipelines.core.finding import Severity

MOST_SHOWN = 20


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


def _asset(stream: str) -> dg.AssetKey:
    return table_key(stream) if stream else PUBLISHED


def check_results(
    keys: AbstractSet[dg.AssetCheckKey], results: list[CheckResult]
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


def _combine(key: dg.AssetCheckKey, results: list[CheckResult]) -> dg.AssetCheckResult:
    bad = [each for each in results if each.state is not State.PASSED]
    lines = [line for each in bad for line in _lines(each)]
    is_error = results[0].check.severity is Severity.ERROR
    return dg.AssetCheckResult(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=not bad,
        severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
        description="\n".join(lines[:MOST_SHOWN]) or None,
        metadata={state: sum(each.state is state for each in results) for state in State},
    )


def _lines(result: CheckResult) -> list[str]:
    if result.state is State.UNKNOWN:
        subject = "/".join(filter(None, result.about)) or "warehouse"
        return [f"{subject}: not known. {result.reason}"]
    return [f"{each.message} {each.remedy}".strip() for each in result.findings]

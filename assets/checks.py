"""Asset checks: every check of the catalogue, over all connections.

A check result of Dagster has no partition, so the checks stand on the assets without partitions.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

import dagster as dg

from pipelines.checks.catalogue import CHECKS, Check, CheckResult, Scope, State
from pipelines.config.settings import Settings
from pipelines.core.finding import Severity

MOST_SHOWN = 20


def check_specs(settings: Settings) -> Iterator[dg.AssetCheckSpec]:
    """Yield what Dagster shows of each check before it is evaluated."""
    for check in CHECKS:
        streams = settings.all_streams() if check.scope is Scope.LIST else [""]
        for stream in streams:
            remedy = check.remedy.format(connection="CONNECTION", stream=stream)
            yield dg.AssetCheckSpec(
                _dagster_name(check.code),
                asset=dg.AssetKey.from_user_string(check.asset.format(stream=stream)),
                description=f"{check.question}\n\nIf it fails: {remedy}",
            )


def _dagster_name(code: str) -> str:
    """Return the name of a check in Dagster, which allows no hyphen."""
    return code.replace("-", "_")


def check_results(
    keys: AbstractSet[dg.AssetCheckKey], results: list[CheckResult]
) -> Iterator[dg.AssetCheckResult]:
    """Yield one result for each selected check that was asked about anything.

    A check of a list that no connection reads yields nothing and stays unevaluated.
    """
    for key in sorted(keys):
        asset = key.asset_key.to_user_string()
        own = [
            each for each in results if (each.asset, _dagster_name(each.code)) == (asset, key.name)
        ]
        if own:
            yield check_result(key, own)


def check_result(key: dg.AssetCheckKey, results: list[CheckResult]) -> dg.AssetCheckResult:
    """Combine what a check says of all connections: it passes only if it passes for each."""
    check = next(each for each in CHECKS if each.code == results[0].code)
    bad = [each for each in results if each.state is not State.PASSED]
    lines = [line for each in bad for line in _lines(each)]
    states = {state: sum(each.state is state for each in results) for state in State}
    return dg.AssetCheckResult(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=not bad,
        severity=_severity(check),
        description="\n".join(lines[:MOST_SHOWN]) or None,
        metadata={str(state): dg.MetadataValue.int(number) for state, number in states.items()},
    )


def _severity(check: Check) -> dg.AssetCheckSeverity:
    error = check.severity is Severity.ERROR
    return dg.AssetCheckSeverity.ERROR if error else dg.AssetCheckSeverity.WARN


def _lines(result: CheckResult) -> list[str]:
    if result.state is State.UNKNOWN:
        subject = "/".join(part for part in (result.connection, result.stream) if part)
        return [f"{subject or 'warehouse'}: not known. {result.reason}".strip()]
    return [f"{each.message} {each.remedy}".strip() for each in result.findings]

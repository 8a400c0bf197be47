"""Asset checks: every check of the catalogue, over all connections.

A check result of Dagster has no partition, so the checks stand on the assets without partitions.
"""

from collections.abc import Iterator

import dagster as dg

from assets.resources import HomeResource
from pipelines.app.checkup import run_checks
from pipelines.checks.catalogue import CHECKS, Check, CheckResult, Scope, State
from pipelines.checks.check import Severity
from pipelines.config.settings import Settings

MOST_SHOWN = 20


def warehouse_checks(settings: Settings) -> dg.AssetChecksDefinition:
    """Return the step that evaluates all checks."""

    @dg.multi_asset_check(name="checks", specs=list(_specs(settings)), can_subset=True)
    def checks(
        context: dg.AssetCheckExecutionContext, home: HomeResource
    ) -> Iterator[dg.AssetCheckResult]:
        with home.session() as session:
            results = run_checks(session)
        for key in sorted(context.selected_asset_check_keys):
            asset = key.asset_key.to_user_string()
            own = [each for each in results if (each.asset, each.code) == (asset, code_of(key))]
            if own:  # none where no connection reads the list: the check then stays unevaluated
                yield check_result(key, own)

    return checks


def _specs(settings: Settings) -> Iterator[dg.AssetCheckSpec]:
    for check in CHECKS:
        streams = settings.all_streams() if check.scope is Scope.LIST else [""]
        for stream in streams:
            remedy = check.remedy.format(connection="CONNECTION", stream=stream)
            yield dg.AssetCheckSpec(
                check.code.replace("-", "_"),
                asset=dg.AssetKey.from_user_string(check.asset.format(stream=stream)),
                description=f"{check.question}\n\nIf it fails: {remedy}",
            )


def code_of(key: dg.AssetCheckKey) -> str:
    """Return the code of a check; Dagster's names have no hyphen."""
    return next(check.code for check in CHECKS if check.code.replace("-", "_") == key.name)


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

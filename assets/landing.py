"""The checks of `current/<stream>`: what the guards of the warehouse saw, shown with its numbers.

Here: from evidence to results. Not here: their words (checks), what stops a fold (the warehouse).
"""

from collections.abc import Iterator, Sequence

import dagster as dg

from assets import catalog, interface
from assets.checks import (
    AS_DESCRIBED,
    COLUMNS,
    ERROR,
    FOLDED,
    MOST,
    NOTHING_LOST,
    REQUIRED,
    ROW_DROP,
    UNIQUE,
    Numbers,
)
from pipelines import run
from pipelines.errors import PartnerSyncError
from pipelines.run import Evidence
from pipelines.state.decisions import Kind
from pipelines.warehouse.evolution import What

ALL = (FOLDED, NOTHING_LOST, ROW_DROP, UNIQUE, REQUIRED, COLUMNS, AS_DESCRIBED)


def results(
    stream: str, evidence: Evidence, failures: Sequence[PartnerSyncError]
) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of every check of a stream's current table."""
    key = catalog.key("current", stream)
    yield _folded(key, evidence, failures)
    yield _nothing_lost(key, evidence, failures)
    yield _row_drop(key, evidence)
    yield _unique(key, evidence)
    yield _required(key, evidence)
    yield _columns(key, evidence)
    yield interface.as_described(key, evidence.differences)


def _folded(
    key: dg.AssetKey, evidence: Evidence, failures: Sequence[PartnerSyncError]
) -> dg.AssetCheckResult:
    numbers: Numbers = {
        "readings folded": len(evidence.landings),
        "failures": len(failures),
        "failure": list(map(str, failures))[:MOST],
        "readings that wait for a person": [each.words for each in evidence.waiting][:MOST],
    }
    return FOLDED.result(key, numbers, passed=not failures)


def _nothing_lost(
    key: dg.AssetKey, evidence: Evidence, failures: Sequence[PartnerSyncError]
) -> dg.AssetCheckResult:
    lost = [str(each) for each in failures if run.lost(each)]
    folds = [each.fold for each in evidence.landings]
    numbers: Numbers = {
        "rows read": sum(each.read for each in folds),
        "duplicates replaced": sum(each.duplicates for each in folds),
        "rows set aside in quarantine": sum(each.quarantined for each in folds),
        "readings with values lost": len(lost),
        "lost": lost,
    }
    return NOTHING_LOST.result(key, numbers, passed=not lost)


def _row_drop(key: dg.AssetKey, evidence: Evidence) -> dg.AssetCheckResult:
    worst = max((each.dropped for each in evidence.landings), default=0.0)
    held = evidence.awaits(Kind.DISAPPEARED)
    last = evidence.landings[-1:]
    numbers: Numbers = {
        "rows at the last reading": sum(each.there for each in last),
        "rows at the one before": sum(each.expected for each in last),
        "largest drop in percent": round(100 * worst, 3),
        "limit in percent (may_disappear)": 100 * evidence.may_disappear,
        "held back": [each.words for each in held],
    }
    passed = not held and worst <= evidence.may_disappear
    return ROW_DROP.result(key, numbers, passed=passed)


def _unique(key: dg.AssetKey, evidence: Evidence) -> dg.AssetCheckResult:
    """Warn of records of one key in a page; a key that is twice in the table is a defect."""
    conflicts = sum(each.fold.conflicts for each in evidence.landings)
    twice = evidence.current.twice if evidence.current else 0
    rows = evidence.current.rows[key.path[-1]] if evidence.current else 0
    numbers: Numbers = {
        "rows": rows,
        "rows whose key another row has": twice,
        "records of one key with other content": conflicts,
    }
    severity = ERROR if twice else UNIQUE.severity
    return UNIQUE.result(key, numbers, passed=not twice and not conflicts, severity=severity)


def _required(key: dg.AssetKey, evidence: Evidence) -> dg.AssetCheckResult:
    lacking = evidence.lacking
    numbers: Numbers = {
        "fields described as always there": evidence.required or 0,
        "described": "yes" if evidence.required is not None else "no description of this list",
        "fields that are not": len(lacking),
        "which": [str(each) for each in lacking][:MOST],
    }
    return REQUIRED.result(key, numbers, passed=not lacking)


def _columns(key: dg.AssetKey, evidence: Evidence) -> dg.AssetCheckResult:
    held = evidence.awaits(Kind.SCHEMA)
    kinds = [each.what for each in evidence.changes]
    numbers: Numbers = {f"columns {what}": kinds.count(what) for what in What}
    words: Numbers = {
        "changes": [each.words for each in evidence.changes][:MOST],
        "held back": [each.words for each in held],
    }
    return COLUMNS.result(key, {**numbers, **words}, passed=not kinds and not held)

"""Loads one sealed scan into the tables of a version that is being built."""

from dataclasses import dataclass

import duckdb

from pipelines.archive.scan_file import SealedScan
from pipelines.checks.check import Finding
from pipelines.config.values import Contract


@dataclass(frozen=True)
class LoadPolicy:
    """What a scan may do to the tables. `approved`: a person has approved this very scan."""

    contract: Contract = "evolve"
    max_deleted_share: float = 0.1
    allow_empty: bool = False
    approved: bool = False


@dataclass(frozen=True)
class LoadResult:
    """What loading one scan did, in rows. If `held` gives a reason, nothing was written."""

    scan_id: str
    new: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    quarantined: int = 0
    held: str | None = None
    findings: tuple[Finding, ...] = ()


def load_scan(db: duckdb.DuckDBPyConnection, scan: SealedScan, policy: LoadPolicy) -> LoadResult:
    """Load a scan in one transaction. Raises LoadFailed; the tables are then unchanged.

    Loading the same scan again touches no row. Guards run before the first write.
    """
    raise NotImplementedError

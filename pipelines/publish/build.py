"""Builds version N+1 from version N and the sealed scans that it does not hold."""

from dataclasses import dataclass, field

from pipelines.load.load import LoadResult
from pipelines.warehouse.protocol import Version


@dataclass(frozen=True)
class BuildResult:
    """What a build did. `version` is the base where there was nothing new, None without any data."""

    version: Version | None
    is_new: bool
    results: tuple[LoadResult, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)  # scan id -> reason

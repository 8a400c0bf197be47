"""The guard against mass disappearance: how many rows may be gone in one reading.

A service that breaks answers short lists. So a reading that lacks too much is held back, and a
person says whether the records are truly gone (awaiting). Not here: what becomes of missing rows
(merge).
"""

from dataclasses import dataclass

from pipelines.state.decisions import Kind
from pipelines.warehouse.archive import Manifest
from pipelines.warehouse.awaiting import Awaited

SHARE = 0.1


@dataclass(frozen=True)
class Guard:
    """What may be gone of a list; `accepted`: a person said that what this manifest lacks is.

    `may_be_empty`: all of it may be gone.
    """

    share: float = SHARE
    may_be_empty: bool = False
    accepted: bool = False

    def judge(self, manifest: Manifest, there: int, gone: int) -> None:
        """Raise Awaited where more is gone of what was there than may be, or all of it."""
        empty = gone == there and not manifest.rows
        few = gone <= max(1, int(there * self.share)) and gone < there
        if self.accepted or not gone or few or (empty and self.may_be_empty):
            return
        if empty:
            words = (
                f"the service answered an empty list where {there:,} rows were. If it may be empty "
                f"at any time, set may_be_empty = true in [streams.{manifest.stream}]."
            )
        else:
            words = (
                f"{gone:,} of {there:,} rows are gone in {manifest.file}, more than "
                f"{self.share:.0%}. If they are not truly gone, run sync again: the next reading "
                "is compared with the rows kept."
            )
        raise Awaited(Kind.DISAPPEARED, manifest, gone, words)

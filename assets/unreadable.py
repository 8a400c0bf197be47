"""What Dagster shows of a home whose configuration cannot be read: a red asset, a failed run.

Its asset `published/warehouse` and its job `publish` are there and fail with the reason, so that it
is missed by nobody. Once it can be read, the code location is loaded again.
"""

from datetime import UTC, datetime
from hashlib import sha256

import dagster as dg

from assets.automation import PUBLISH_JOB
from assets.names import Names
from assets.resources import failure
from assets.sensors import sensor

RELOAD = "Then reload the code location."


def unreadable_home(names: Names, reason: str) -> dg.Definitions:
    """Return definitions that only say why a home is not read, once a day."""

    @dg.asset(
        key=names.published,
        group_name=names.group("published"),
        description=f"This home cannot be read. {reason} {RELOAD}",
        pool=names.resource,
    )
    def published() -> None:
        raise failure(
            "This home cannot be read: it is not synced. Analysts still see what is "
            f"published. {reason}",
            RELOAD,
        )

    job = dg.define_asset_job(
        names.of(PUBLISH_JOB),
        selection=dg.AssetSelection.assets(published),
        description="Fails, and says why this home cannot be read.",
    )

    @sensor(
        name=names.of("unreadable"),
        job=job,
        minimum_interval_seconds=60,
        description="Launches `publish`, which fails and says why, once a day.",
    )
    def unreadable() -> dg.RunRequest:
        digest = sha256(reason.encode()).hexdigest()
        return dg.RunRequest(run_key=f"{datetime.now(UTC).date()} {digest}")

    return dg.Definitions(assets=[published], jobs=[job], sensors=[unreadable])

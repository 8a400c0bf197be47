"""What each target of alerts was told of what stands, so that it is told once.

A row goes when the target has heard that it is over. Not here: what is an alert (alerts).
"""

from dataclasses import asdict, dataclass, fields
from datetime import datetime

from sqlalchemy import Engine, delete, select

from pipelines.state.conflict import insert
from pipelines.state.tables import TELLINGS


@dataclass(frozen=True)
class Telling:
    """What a target was last told about a matter.

    `mark` tells whether it is still the same, `since` is when the target first heard of it.
    """

    target: str
    alert: str
    about: str
    mark: str
    since: datetime
    told_at: datetime


def told(engine: Engine, target: str) -> dict[tuple[str, str], Telling]:
    """Return what a target knows, by alert and what it is about."""
    columns = [TELLINGS.c[each.name] for each in fields(Telling)]
    query = select(*columns).where(TELLINGS.c.target == target)
    with engine.connect() as ledger:
        rows = [Telling(*row) for row in ledger.execute(query)]
    return {(row.alert, row.about): row for row in rows}


def note(engine: Engine, telling: Telling) -> None:
    """Keep what a target was told now; since when it knows of it stays."""
    news = {"mark": telling.mark, "told_at": telling.told_at}
    row = insert(engine, TELLINGS).values(asdict(telling))
    with engine.begin() as ledger:
        ledger.execute(row.on_conflict_do_update(TELLINGS.primary_key, set_=news))


def forget(engine: Engine, telling: Telling) -> None:
    """Keep nothing of what is over."""
    row = delete(TELLINGS).where(
        TELLINGS.c.target == telling.target,
        TELLINGS.c.alert == telling.alert,
        TELLINGS.c.about == telling.about,
    )
    with engine.begin() as ledger:
        ledger.execute(row)

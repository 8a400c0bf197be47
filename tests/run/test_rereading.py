"""Figures from every page: of records with one key the one that is loaded counts."""

import json
from datetime import date
from decimal import Decimal

from benchmarks import archived
from pipelines import run
from pipelines.run import Session
from pipelines.run.rereading import Rereading, Wanted
from pipelines.settings.mapping import Mapping
from pipelines.warehouse import conflicts
from tests.run.conftest import Begun
from tests.run.kept_nights import home

GIVEN = Mapping.model_validate(
    {"usage": {"stream": "events", "period": "day", "amount": "amount", "partner": "partner"}}
)


def night(session: Session, number: int) -> str:
    """Fold a list whose record e0 is followed by another one of its key."""
    keys = [(f"e{each}", 1) for each in range(60)]
    rows = [*keys, ("e0", 100)] if number == 1 else [keys[0], ("e0", 100), *keys[1:]]
    records = [
        json.dumps({"id": key, "day": "2026-09-01", "amount": amount, "partner": "p"})
        for key, amount in rows
    ]
    file = archived.night(session, "events", number, records)
    (order,) = archived.orders(session, ("events",))
    run.fold(session, order)
    return file


def test_a_record_that_is_not_loaded_is_in_no_figure(begun: Begun) -> None:
    with home(begun(lambda _session: None)) as session:
        for number in (1, 2):
            file = night(session, number)
            with session.work.writing() as database:
                ((loaded,),) = database.execute("SELECT sum(amount) FROM current.events").fetchall()
                apart = conflicts.listed(database, "default", "events")
            assert len(apart) == 1
            rereading = Rereading(session.archive, GIVEN, "id", {"events": apart})
            wanted = Wanted(date(2026, 9, 1), None, None, every=True)
            figures = rereading.figures(wanted, {"events": file})
            assert figures["used_amount"] == Decimal(loaded) == 159
            assert figures["used_rows"] == 60

"""Alerts of a home: judged after every run, told once, again after a while, and when they are over.

What a target was told is in the ledger; a target that fails is tried again the next time. Nothing
here ever fails a run. Not here: what is an alert (alerts), how a target is reached (targets).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pipelines.alerts import ALERTS, Scene, Standing, judge
from pipelines.errors import (
    ConfigurationError,
    PartnerSyncError,
    StorageFailed,
    WarehouseBusy,
    WarehouseDamaged,
)
from pipelines.run.message import compose, trial
from pipelines.run.session import Session
from pipelines.run.targets import Target, targets
from pipelines.state import runs, tellings
from pipelines.state.tellings import Telling
from pipelines.streams import known
from pipelines.warehouse import awaiting, meta

TURN = 20.0  # seconds for another process to tell its alerts
LONGEST_RUN = timedelta(days=1)  # a run that began earlier and never ended was killed
EVENTS = {alert.name for alert in ALERTS if alert.event}


@dataclass(frozen=True)
class Stands:
    """An alert that stands, and since when that was told."""

    standing: Standing
    since: datetime | None


@dataclass(frozen=True)
class Tried:
    """What became of a trial message to a target; `error` is empty where it arrived."""

    target: str
    error: str


@contextmanager
def alerted(session: Session) -> Iterator[None]:
    """Judge and tell alerts when the block is over, also where it failed.

    Not after Ctrl-C, nor where nothing was begun: who asked is told in person.
    """
    try:
        yield
    except ConfigurationError:
        raise
    except Exception:
        alert(session)
        raise
    alert(session)


def alert(session: Session) -> tuple[Standing, ...]:
    """Tell every target what is the matter and new to it, or over; return what stands.

    What goes wrong with that is said and nothing else.
    """
    lock = session.locks.lock("alerts")
    try:
        if not lock.acquire(TURN):
            session.watch.waiting("alerts were not told: another process is telling its own")
            return ()
        try:
            scene = _scene(session)
            standing = judge(ALERTS, scene)
            for target in targets(session.settings, session.watch.waiting):
                _tell(session, target, scene, standing)
            return tuple(standing)
        finally:
            lock.release()
    except PartnerSyncError as error:
        session.watch.waiting(f"alerts were not told: {error}")
    return ()


def stands(session: Session) -> tuple[Stands, ...]:
    """Return what stands now; nobody is told."""
    told = tellings.told(session.ledger, "log")
    return tuple(
        Stands(each, told[each.key].since if each.key in told else None)
        for each in judge(ALERTS, _scene(session))
    )


def try_targets(session: Session) -> tuple[Tried, ...]:
    """Send every target a trial message; return what became of each."""
    message, tried = trial(session.clock.now()), []
    for target in targets(session.settings, session.watch.waiting):
        try:
            target.send(message)
        except PartnerSyncError as error:
            tried.append(Tried(target.name, str(error)))
        else:
            tried.append(Tried(target.name, ""))
    return tuple(tried)


def fail(session: Session, run: str) -> tuple[Standing, ...]:
    """Record that a run failed whose own end did not say so; tell alerts."""
    catch_up(session, {run: session.clock.now()})
    return alert(session)


def catch_up(session: Session, failed: Mapping[str, datetime]) -> None:
    """Record runs that failed, each with its end, where the ledger does not say so; tell nobody."""
    runs.fail(session.ledger, failed)


def _scene(session: Session) -> Scene:
    """Look at the home; the work database is left alone where another run has it."""
    settings, now = session.settings, session.clock.now()
    lists = [
        (name, stream.name)
        for name, of in settings.connections().items()
        for stream in known(settings, of.surface)
    ]
    latest = runs.last_by_connection(session.ledger)
    busy = [
        name
        for name, (begun, outcome) in latest.items()
        if outcome is None and begun > now - LONGEST_RUN
    ]
    stale_after = timedelta(hours=settings.stale_after)
    scene = Scene(session.ledger, now, stale_after, lists, frozenset(busy))
    return _with_tables(session, scene)


def _with_tables(session: Session, scene: Scene) -> Scene:
    work = replace(session.work, longest=0.0, waiting=lambda _words: None)
    if not work.there:
        return replace(scene, tables=True)
    try:
        with work.writing() as writer:
            waiting = awaiting.awaited(writer)
            return replace(scene, tables=True, waiting=waiting, folds=meta.held(writer))
    except (WarehouseBusy, StorageFailed):  # of a lake that is away, who asked is told
        return scene
    except WarehouseDamaged as error:
        session.watch.waiting(str(error))
        return scene


def _tell(session: Session, target: Target, scene: Scene, standing: Sequence[Standing]) -> None:
    """Tell one target what it does not know yet; what it heard is kept, else it is tried again."""
    told = tellings.told(session.ledger, target.name)
    again = timedelta(hours=session.settings.alert_again)
    news = [each for each in standing if _is_news(each, told.get(each.key), scene.now - again)]
    over = _over(told, scene, standing)
    heard = [each for each in over if each.alert not in EVENTS]
    if news or heard:
        try:
            target.send(compose(scene.now, news, heard))
        except PartnerSyncError as error:
            session.watch.waiting(
                f"alerts: {target.name} was not told: {error}. It is tried again the next time."
            )
            return
    for each in news:
        row = Telling(target.name, *each.key, each.finding.mark, scene.now, scene.now)
        tellings.note(session.ledger, row)
    for row in over:
        tellings.forget(session.ledger, row)


def _is_news(standing: Standing, told: Telling | None, before: datetime) -> bool:
    """Tell whether a target is to hear of it: for the first time, changed, or after a while."""
    if told is None or told.mark != standing.finding.mark:
        return True
    return not standing.alert.event and told.told_at <= before


def _over(
    told: dict[tuple[str, str], Telling], scene: Scene, standing: Sequence[Standing]
) -> list[Telling]:
    """Return what a target was told and what stands no more, as far as that can be said."""
    there = {each.key for each in standing}
    by_name = {alert.name: alert for alert in ALERTS}
    return [
        row
        for key, row in told.items()
        if key not in there
        and not (row.alert in by_name and by_name[row.alert].undecided(scene, row.about))
    ]

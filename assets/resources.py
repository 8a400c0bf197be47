"""What asset bodies are given: the way to open a session, and nothing secret.

Settings come from the environment and the home, as for the command line; the secret is read when a
token is asked for, so that neither Dagster's configuration nor its event log ever holds it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date

import dagster as dg

from pipelines import run, settings
from pipelines.errors import ConfigurationError, StorageFailed
from pipelines.run import Lane, Order, Session, Watch
from pipelines.settings import Connection, Settings

Context = dg.AssetExecutionContext | dg.AssetCheckExecutionContext
TRIES, SECONDS = 4, 30  # of a step that met a store of several machines that was away
SCHEDULE_TAG = "dagster/schedule_name"  # Dagster's own, on every run that a schedule asked for


def connection(session: Session, name: str) -> Connection:
    """Return a connection; fail the step in plain words where it is not configured."""
    try:
        return session.settings.connection(name)
    except ConfigurationError as error:
        raise dg.Failure(str(error)) from None


def night(dagster_run: dg.DagsterRun, of: Connection, day: date) -> Order:
    """Return the order of a run for one connection and day: its place in the queue, its name.

    What the schedule asked for is the night's, even where it begins late; all else is ad hoc.
    """
    scheduled = SCHEDULE_TAG in dagster_run.tags
    lane = Lane.NIGHTLY if scheduled else Lane.ADHOC
    return Order(of, day, (), scheduled=scheduled, lane=lane, run=dagster_run.run_id)


def there(context: dg.AssetExecutionContext, session: Session, outcomes: Iterable[object]) -> None:
    """Raise the failure of a shared store, so that the step is tried again, while it may be."""
    lost = [each for each in outcomes if isinstance(each, StorageFailed)]
    if lost and session.settings.state and context.retry_number < TRIES:
        raise lost[0]


class Sync(dg.ConfigurableResource[None]):
    """Opens sessions on the home of this deployment."""

    @contextmanager
    def session(self, context: Context) -> Iterator[Session]:
        """Yield a session that tells the run's log when it has to wait; tried again as `patient`.

        The step goes on from what was read.
        """
        loaded = settings.load()
        with patient(context, loaded), run.open(loaded, Watch(waiting=context.log.info)) as session:
            yield session


@contextmanager
def patient(context: Context, loaded: Settings) -> Iterator[None]:
    """Let the step be tried again where what several machines share is away for a minute."""
    try:
        yield
    except StorageFailed as error:
        if not loaded.state:
            raise
        context.log.info("%s", error)
        raise dg.RetryRequested(max_retries=TRIES, seconds_to_wait=SECONDS) from error

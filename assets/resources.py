"""What asset bodies receive: the path of the home. Secrets are read by the application only."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg

from assets.names import Names
from pipelines.app.session import AppSession, open_session
from pipelines.config.home import Home
from pipelines.core import stop
from pipelines.core.errors import PartnerSyncError

STOPPED = (
    "The run was stopped. Analysts see the version that was published last. What was read is kept: "
    "launch the run again within 24 hours to resume."
)
# Tags of a run: its home, and its id with the process that works on it.
HOME_TAG = ".partner-sync/home"
PROCESS_TAG = ".partner-sync/process"


class HomeResource(dg.ConfigurableResource[None]):
    """Opens a home of this deployment."""

    path: str
    name: str = "home"  # of the resource: the same on each machine, as the path need not be

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Note which process works on a run, for the sensor `killed_runs`."""
        run = context.run
        if run is None or context.instance is None:
            return
        # Where the home cannot be opened, the step says why.
        with suppress(dg.Failure), self.session() as session:
            process = f"{run.run_id} {session.metadata.this_process()}"
            context.instance.add_run_tags(run.run_id, {HOME_TAG: self.name, PROCESS_TAG: process})

    @contextmanager
    def session(self) -> Iterator[AppSession]:
        """Open the home for the block. An expected failure becomes a failed step, without retry.

        A request to stop the run is noted. The application raises KeyboardInterrupt at the next
        safe point, with its scan files closed, so that a later run resumes them. Dagster marks the
        run as canceled.
        """
        home = Home(Path(self.path))
        try:
            with _stop_is_noted(), expected_failures(), open_session(home) as session:
                try:
                    yield session
                finally:
                    # A stop can lead to other failures, which would be shown in its place.
                    stop.raise_if_requested()
        except KeyboardInterrupt:
            # Dagster shows all frames; those of asyncio say nothing.
            raise KeyboardInterrupt(STOPPED) from None


def home_in(context: Any, names: Names) -> HomeResource:
    """Return the home with these names, in a step or a tick that requires its resource."""
    home: HomeResource = getattr(context.resources, names.resource)
    return home


def failure(message: str, remedy: str = "") -> dg.Failure:
    """Return the failure of a step. Dagster does not retry it: the client has retried already."""
    return dg.Failure(f"{message} {remedy}".strip(), allow_retries=False)


@contextmanager
def expected_failures() -> Iterator[None]:
    """Make an expected failure in the block that of a step, a tick or the code location."""
    try:
        yield
    except PartnerSyncError as error:
        raise failure(str(error), error.remedy) from None


@contextmanager
def _stop_is_noted() -> Iterator[None]:
    """Note SIGINT and SIGTERM in the block, instead of raising Dagster's own error anywhere.

    asyncio would log that error and go on where it is raised in a callback.
    """
    if threading.current_thread() is not threading.main_thread():
        # Signals reach the main thread only.
        yield
        return
    with stop.noted(signal.SIGINT, signal.SIGTERM):
        yield

"""What asset bodies receive: the path of the home. Secrets are read by the application only."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

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
# Dagster's own: its daemon launches a run again whose step has failed (`run_retries`).
RETRY_TAG = "dagster/retry_on_asset_or_op_failure"


class HomeResource(dg.ConfigurableResource[None]):
    """Opens a home of this deployment."""

    path: str
    name: str = "home"  # of the resource: the same on each machine, as the path need not be
    _tag_run: Callable[[dict[str, str]], None] | None = PrivateAttr(None)
    _held_name: object = PrivateAttr(None)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Note which process works on a run, and that Dagster may launch the run again.

        The process is for the sensor `killed_runs`. A failure that would come again changes the
        other tag. One that nobody foresees cannot: Dagster's own storage may be away just then.
        """
        run = context.run
        if run is None or context.instance is None:
            return
        self._tag_run = partial(context.instance.add_run_tags, run.run_id)
        # Where the home cannot be opened, the step says why.
        with suppress(dg.Failure), self.session() as session:
            process = f"{run.run_id} {session.metadata.this_process()}"
            # The home is closed in between, and the sensor may be in another container.
            self._held_name = session.metadata.held_name()
            self._tag_run({HOME_TAG: self.name, PROCESS_TAG: process, RETRY_TAG: "true"})

    @contextmanager
    def session(self) -> Iterator[AppSession]:
        """Open the home for the block. An expected failure becomes that of the step.

        A request to stop the run is noted. The application raises KeyboardInterrupt at the next
        safe point, with its scan files closed, so that a later run resumes them. Dagster marks the
        run as canceled.
        """
        home = Home(Path(self.path))
        try:
            with _stop_is_noted(), open_session(home) as session:
                try:
                    yield session
                finally:
                    # A stop can lead to other failures, which would be shown in its place.
                    stop.raise_if_requested()
        except PartnerSyncError as error:
            raise self.failure(str(error), error.remedy, may_pass=error.may_pass) from None
        except KeyboardInterrupt:
            # Dagster shows all frames; those of asyncio say nothing.
            raise KeyboardInterrupt(STOPPED) from None

    def failure(self, message: str, remedy: str = "", *, may_pass: bool) -> dg.Failure:
        """Return the failure of a step or tick. Dagster launches the run again if it may pass."""
        if self._tag_run is not None:
            # A run that was launched again has the tags of the one before.
            self._tag_run({RETRY_TAG: str(may_pass).lower()})
        return failure(message, remedy)


def home_in(context: Any, names: Names) -> HomeResource:
    """Return the home with these names, in a step or a tick that requires its resource."""
    home: HomeResource = getattr(context.resources, names.resource)
    return home


def failure(message: str, remedy: str = "") -> dg.Failure:
    """Return a failure that Dagster does not retry by itself: the client has retried already."""
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

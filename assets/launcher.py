"""Here: the launcher that sends runs to Celery workers, which deploy/dagster.yaml names.

Needs the extra `cluster`.
"""

from dagster_celery.launcher import CeleryRunLauncher


class WorkerRunLauncher(CeleryRunLauncher):  # type: ignore[misc] # untyped, or not here
    """Sends runs to Celery workers.

    dagster-celery 0.29.27 does not note that a person terminates a run. Dagster then takes its end
    for a crash, and launches it again.
    """

    def terminate(self, run_id: str) -> bool:
        """Note that a run is to be canceled, then stop it; return whether it could be asked."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        return bool(super().terminate(run_id))

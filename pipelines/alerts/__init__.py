"""What people are told of without asking, one file each.

To add one: a new file here that declares one `Alert`, and a heading in docs/runbook.md. What tells
it (`run.alert`), the verb `status` and Dagster's sensors derive from `ALERTS`.
"""

from pipelines.alerts.base import Alert, Finding, Scene, Standing, heading, judge
from pipelines.shelf import members

__all__ = ["ALERTS", "Alert", "Finding", "Scene", "Standing", "heading", "judge"]

ALERTS = members(__name__, __path__, Alert)

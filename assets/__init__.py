"""Here: what tells Dagster of the pipeline: assets, checks, schedules, sensors.

A night: the schedule (automation) launches runs of `raw`; when they have ended, a sensor
(`publish_after_reads`) launches the job `publish` (warehouse). Jobs are listed in definitions.

Not here: what they do. Each calls the functions of `pipelines.app` that a command calls.
"""

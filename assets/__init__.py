"""Here: what tells Dagster of the pipeline: assets, checks, schedules, sensors.

Not here: what they do. Each calls the functions of `pipelines.app` that a command calls.
"""

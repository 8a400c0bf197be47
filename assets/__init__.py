"""Dagster's door to the sync: one file per link of the chain, thin bodies.

An asset body opens a session, calls one public function of `pipelines.run` and reports what it
returned. Nothing of the sync's own logic lives here.
"""

"""Dagster's door to the sync: one file per link of the chain, thin bodies.

An asset body opens a session, calls one public function of `pipelines.run` and reports what it
returned. Nothing of the sync's own logic lives here.
"""

import warnings

import dagster as dg

# Runs over several days and links to code; what they do here is tested.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

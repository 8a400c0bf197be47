"""The verb `plan`: what would a sync cost now?"""

from typing import Annotated

import typer

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.run.plan import Plan
from pipelines.warehouse import frames

app = typer.Typer()

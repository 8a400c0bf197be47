"""Who runs a command, and questions on the terminal."""

import getpass
import sys

import typer

from pipelines.app.decide import Verdict
from pipelines.core.errors import ConfigurationError


def verdict(reason: str | None, *, reject: bool = False) -> Verdict:
    """Return a decision of the user of this process; ask for the reason if none is given."""
    reason = reason or ask({"reason": "Reason"})["reason"]
    return Verdict(getpass.getuser(), reason, reject)


def ask(questions: dict[str, str]) -> dict[str, str]:
    """Ask for the values of options. Raises ConfigurationError where nobody can answer."""
    if questions and not sys.stdin.isatty():
        options = ", ".join(f"--{name.replace('_', '-')}" for name in questions)
        raise ConfigurationError(f"Without a terminal, these options are needed: {options}.")
    return {name: str(typer.prompt(question)) for name, question in questions.items()}

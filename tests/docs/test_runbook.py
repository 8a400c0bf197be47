"""The runbook has a heading for every alert, with what it means and what to do."""

import re
from pathlib import Path

import pytest

from pipelines.alerts import ALERTS, Alert

TEXT = (Path(__file__).parents[2] / "docs" / "runbook.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", TEXT, re.MULTILINE))


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_has_its_heading(alert: Alert) -> None:
    section = SECTIONS[alert.heading]
    parts = ("**What happened.**", "**What it means.**", "**What to do.**", "**It is over** ")
    assert [part for part in parts if part not in section] == []

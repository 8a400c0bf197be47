"""What a target of alerts is told, as text for people and as JSON for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.alerts import Standing, heading
from pipelines.state.tellings import Telling

RUNBOOK = "docs/runbook.md"


@dataclass(frozen=True)
class Message:
    """One message: a subject, a line for each matter, the same at length, and as JSON values."""

    at: datetime
    subject: str
    lines: tuple[str, ...]
    text: str
    body: Mapping[str, Any]


def compose(now: datetime, news: Sequence[Standing], over: Sequence[Telling]) -> Message:
    """Say what stands and is to be told, and what is over."""
    first = news[0].alert.heading if news else heading(over[0].alert)
    about = news[0].finding.about if news else over[0].about
    more = f" and {len(news) + len(over) - 1} more" if len(news) + len(over) > 1 else ""
    subject = " ".join(f"{'' if news else 'over: '}{first} ({about}){more}".split())
    ended = [_ended(each) for each in over]
    text = "\n\n".join([*(_at_length(each) for each in news), *ended])
    body = {
        "source": "partner-sync",
        "at": now.isoformat(),
        "text": f"{subject}\n\n{text}",
        "alerts": [_json(each) for each in news],
        "over": [_json_over(each) for each in over],
    }
    lines = (*(each.words for each in news), *ended)
    return Message(now, f"[partner-sync] {subject}", lines, text, body)


def trial(now: datetime) -> Message:
    """Return what a target is told to see whether it hears."""
    words = "This is a trial: nothing is the matter. Alerts will arrive here."
    body = {"source": "partner-sync", "at": now.isoformat(), "text": words, "trial": True}
    return Message(now, "[partner-sync] trial", (words,), words, body)


def _at_length(each: Standing) -> str:
    alert, finding = each.alert, each.finding
    return (
        f"{alert.heading} ({finding.about})\n"
        f"What happened: {finding.happened}\n"
        f"What it means: {alert.means}\n"
        f"What to do: {finding.do}\n"
        f"More: {RUNBOOK}, {alert.heading}"
    )


def _ended(each: Telling) -> str:
    return f"Over: {heading(each.alert)} ({each.about}), told since {each.since:%Y-%m-%d %H:%M} UTC"


def _json(each: Standing) -> dict[str, str]:
    return {
        "alert": each.alert.name,
        "title": each.alert.heading,
        "about": each.finding.about,
        "happened": each.finding.happened,
        "means": each.alert.means,
        "do": each.finding.do,
        "runbook": f"{RUNBOOK}#{each.alert.heading.lower().replace(' ', '-')}",
    }


def _json_over(each: Telling) -> dict[str, str]:
    return {
        "alert": each.alert,
        "title": heading(each.alert),
        "about": each.about,
        "since": each.since.isoformat(),
    }

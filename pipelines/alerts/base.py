"""What an alert is, what it looks at, and what judges which of them stand.

Here: nothing is told to anybody (run.alerting), and nothing is asked of the service.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Engine

from pipelines.warehouse.awaiting import Awaiting
from pipelines.warehouse.meta import Fold


@dataclass(frozen=True)
class Scene:
    """What alerts look at, at one moment; `lists` are connection and stream of all configured.

    `busy` are the connections with a run under way. `tables` says whether the work database could
    be read; where another run has it, `waiting` and `folds` are empty.
    """

    ledger: Engine
    now: datetime
    stale_after: timedelta
    lists: Sequence[tuple[str, str]]
    busy: frozenset[str] = frozenset()
    tables: bool = False
    waiting: Sequence[Awaiting] = ()
    folds: Mapping[tuple[str, str], Fold] = field(default_factory=dict)

    @property
    def connections(self) -> list[str]:
        """The connections of the lists, each once."""
        return list(dict.fromkeys(connection for connection, _stream in self.lists))

    def streams(self, connection: str) -> list[str]:
        """Return the streams that are read of a connection."""
        return [stream for each, stream in self.lists if each == connection]


@dataclass(frozen=True)
class Finding:
    """Something that is the matter: a connection (`acme`), its stream (`acme/usage`) or an actor.

    `mark` is what would make it another matter, worth telling again; it quotes no foreign text.
    """

    about: str
    happened: str
    do: str
    mark: str = ""


@dataclass(frozen=True)
class Alert:
    """One kind of trouble: what it means for the data, and what finds it.

    `calm`: a connection is judged only while no run of it is under way. `of_tables`: only where the
    work database can be read. An `event` happened and is never over: it is told once.
    """

    name: str
    means: str
    look: Callable[[Scene], Iterable[Finding]]
    calm: bool = False
    of_tables: bool = False
    event: bool = False

    @property
    def heading(self) -> str:
        """Its heading in docs/runbook.md."""
        return heading(self.name)

    def undecided(self, scene: Scene, about: str) -> bool:
        """Tell whether nobody can say now if it stands: what was told of it holds."""
        if self.of_tables and not scene.tables:
            return True
        return self.calm and about.partition("/")[0] in scene.busy


@dataclass(frozen=True)
class Standing:
    """An alert that stands."""

    alert: Alert
    finding: Finding

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others."""
        return self.alert.name, self.finding.about

    @property
    def words(self) -> str:
        """All of it on one line."""
        return (
            f"{self.alert.heading} ({self.finding.about}): {self.finding.happened} "
            f"{self.alert.means} {self.finding.do} (docs/runbook.md, {self.alert.heading})"
        )


def heading(name: str) -> str:
    """Return the heading of an alert, also of one that is told as over and exists no more."""
    return name.replace("_", " ").capitalize()


def judge(alerts: Iterable[Alert], scene: Scene) -> list[Standing]:
    """Return what stands, as far as it can be said now."""
    return [
        Standing(alert, finding)
        for alert in alerts
        for finding in alert.look(scene)
        if not alert.undecided(scene, finding.about)
    ]


def doubled(count: int) -> str:
    """Return a mark that changes when a count has about doubled."""
    return str(count.bit_length())

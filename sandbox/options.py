"""The options of one sandbox, as a value: what ``python -m sandbox`` takes and tests pass directly.

Here: the frozen value with its defaults. Not here: reading a command line (``__main__``).
"""

from dataclasses import dataclass, field
from pathlib import Path

from sandbox.changes import Changes
from sandbox.clients import Client
from sandbox.data.names import FieldNames
from sandbox.data.sizes import Sizes
from sandbox.faults.kind import Fault
from sandbox.keys import ApiKey

AUDIENCE = "partner-sync-sandbox"
TOKEN_SECONDS = 3600  # "Token lifetime"
ACTOR_RATE = 5  # "Rate limits": requests a window for an authenticated actor
ADDRESS_RATE = 1  # the same for an unauthenticated caller, keyed by IP


@dataclass(frozen=True)
class Limits:
    """The rate limits: ``rate`` requests an actor in ``window`` seconds, 0 for no limiter."""

    rate: int = ACTOR_RATE
    window: float = 1.0
    token_route: bool = False


@dataclass(frozen=True)
class Delay:
    """The wire's delay in milliseconds; jitter is drawn for each way anew, uniform from 0."""

    latency_ms: float = 0.0
    jitter_ms: float = 0.0


@dataclass(frozen=True)
class Trials:
    """What tries a client on purpose; nothing of it is part of the interface.

    ``changes`` by list, ``plant`` plants errors for reconciliation, ``control`` serves the routes
    that change all this while the service runs.
    """

    faults: tuple[Fault, ...] = ()
    changes: tuple[tuple[str, Changes], ...] = ()
    plant: bool = False
    control: bool = True


@dataclass(frozen=True)
class Options:
    """Everything that one sandbox is made of.

    ``awkward`` data have extreme amounts and texts, and no extra bills. ``field_names`` are those
    of usage and billing records. ``most`` is the largest page of a list, where it is not that of
    the interface document; the interface description says the same.
    """

    clients: tuple[Client, ...]
    base_url: str
    seed: int = 7
    sizes: Sizes = field(default_factory=Sizes)
    awkward: bool = False
    field_names: FieldNames = "usual"
    most: tuple[tuple[str, int], ...] = ()
    limits: Limits = field(default_factory=Limits)
    delay: Delay = field(default_factory=Delay)
    token_seconds: int = TOKEN_SECONDS
    audience: str = AUDIENCE
    keys: tuple[ApiKey, ...] = ()
    store: Path | None = None
    trials: Trials = field(default_factory=Trials)

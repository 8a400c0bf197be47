"""The catalogue: every kind of fault by its name, and reading a fault from a text.

Here: the families. Not here: their members.
"""

from sandbox.faults import bodies, contents, envelopes, orders, requests, statuses, tokens, wires
from sandbox.faults.kind import Fault, Kind

FAMILIES = (statuses, bodies, envelopes, contents, orders, requests, tokens, wires)
CATALOGUE: dict[str, Kind] = {kind.name: kind for family in FAMILIES for kind in family.FAMILY}
FIELDS = 3


class UnknownFaultError(ValueError):
    """A text or a name does not say which fault is meant."""


def kind_of(name: str) -> Kind:
    """Find a kind.

    Raises:
        UnknownFaultError: there is none of this name.
    """
    if name not in CATALOGUE:
        raise UnknownFaultError(f"there is no fault {name}: {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def read(text: str) -> Fault:
    """Read ``NAME[:path[:every]]``.

    Raises:
        UnknownFaultError: there is no such fault, the path begins without a slash, or ``every``
            is no positive integer.
    """
    name, *scope = text.split(":")
    kind = kind_of(name)
    path, every = (*scope, "", "")[:2]
    if len(scope) >= FIELDS or (path and not path.startswith("/")):
        raise UnknownFaultError(f"{text} is not NAME[:path[:every]] with a path from the root")
    if every and not (every.isascii() and every.isdigit() and int(every)):
        raise UnknownFaultError(f"{text}: every {every} is no positive integer")
    return Fault(kind, path or kind.path, int(every or 1), value=kind.value)

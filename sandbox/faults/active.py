"""The faults that are on: added and cleared while the service runs, counted request by request.

Here: which faults befall a request. Not here: what they do to it (the families), the layers
(disturbance).
"""

from dataclasses import dataclass
from typing import Any

from sandbox.faults.kind import Fault, Stage


@dataclass
class Active:
    """A fault that is on, the requests in its scope so far, and those that it befell."""

    id: int
    fault: Fault
    seen: int = 0
    befallen: int = 0

    def befalls(self) -> bool:
        """Count one request in its scope and decide."""
        fault = self.fault
        self.seen += 1
        spent = fault.times is not None and self.befallen >= fault.times
        beyond = self.seen - fault.after
        due = not spent and beyond > 0 and beyond % fault.every == 0
        self.befallen += due
        return due

    def report(self) -> dict[str, Any]:
        """Give it as JSON."""
        fault = self.fault
        return {
            "id": self.id,
            "name": fault.kind.name,
            "path": fault.path,
            "every": fault.every,
            "after": fault.after,
            "times": fault.times,
            "value": fault.value,
            "seen": self.seen,
            "befallen": self.befallen,
        }


class Faults:
    """All faults that are on. Ids count up and are never given twice."""

    def __init__(self, faults: tuple[Fault, ...] = ()) -> None:
        self._last = 0
        self._active: dict[int, Active] = {}
        for fault in faults:
            self.add(fault)

    def __bool__(self) -> bool:
        """Tell whether any is on."""
        return bool(self._active)

    def add(self, fault: Fault) -> Active:
        """Switch a fault on."""
        self._last += 1
        active = self._active[self._last] = Active(self._last, fault)
        return active

    def remove(self, number: int) -> bool:
        """Switch one off; False if there is none with this id."""
        return self._active.pop(number, None) is not None

    def clear(self) -> None:
        """Switch all off."""
        self._active.clear()

    def due(self, path: str, stage: Stage) -> list[Fault]:
        """Count a request and give the faults of a stage that befall it."""
        concerned = [
            one
            for one in self._active.values()
            if one.fault.kind.stage is stage and one.fault.concerns(path)
        ]
        return [one.fault for one in concerned if one.befalls()]

    def report(self) -> list[dict[str, Any]]:
        """Give all as JSON."""
        return [one.report() for one in self._active.values()]

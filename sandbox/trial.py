"""What tries a client while the service runs: faults, changing lists, scans, planted errors.

Here: the one state that the control routes change and the layers and lists read. Not here: HTTP.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from sandbox.caller import Caller
from sandbox.changes import LISTS, Living
from sandbox.data.dataset import Dataset, dataset
from sandbox.data.plant import NOTHING, plant
from sandbox.faults.active import Faults
from sandbox.faults.kind import Fault, Stage
from sandbox.faults.tokens import Tokens
from sandbox.options import Options


class Trial:
    """The trials of one service, as its options begin them."""

    def __init__(self, options: Options, verify: Callable[[str], Caller | None]) -> None:
        self._options = options
        self._last_scan = 0
        self.tokens = Tokens(verify)
        self.faults = Faults(options.trials.faults)
        seed, sizes, awkward = options.seed, options.sizes, options.awkward
        self.plant = plant(seed, sizes, awkward=awkward) if options.trials.plant else NOTHING
        names = options.field_names
        still = dataset(seed, sizes, self.plant, awkward=awkward, field_names=names)
        self.lists = {
            name: Living(name, getattr(still, name), options.seed, partial(self._due, name))
            for name in LISTS
        }
        self._begin_changes()

    @property
    def dataset(self) -> Dataset:
        """The lists as they are served."""
        return Dataset(**self.lists)

    def _due(self, name: str) -> list[Fault]:
        return self.faults.due(f"/v2/{name}", Stage.LIST)

    def _begin_changes(self) -> None:
        for name, changes in self._options.trials.changes:
            self.lists[name].configure(changes)

    def reset(self) -> None:
        """Begin again as the options say: their faults and changes and no others."""
        self.faults.clear()
        for fault in self._options.trials.faults:
            self.faults.add(fault)
        self.tokens.clear()
        for living in self.lists.values():
            living.reset()
        self._begin_changes()

    def open_scan(self, name: str) -> dict[str, Any]:
        """Watch a list from its next page on."""
        self._last_scan += 1
        self.lists[name].open(self._last_scan)
        return {"id": self._last_scan, "list": name}

    def close_scan(self, number: int) -> dict[str, Any] | None:
        """Tell what lived through a scan and what happened meanwhile; None if there is no such."""
        for living in self.lists.values():
            truth = living.close(number)
            if truth is not None:
                return {"id": number, "list": living.name, **truth}
        return None

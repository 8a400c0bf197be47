"""Here: every check, and how all of them are evaluated; `sync`, `status` and Dagster show the same.

Not here: what a check is (check).
"""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Final

from pipelines.checks import books, connections, lists, warehouse
from pipelines.checks.check import Check, CheckResult, Scope
from pipelines.checks.context import CheckContext
from pipelines.checks.published import ListName


def _checks_of(*modules: ModuleType) -> Iterator[Check]:
    """Yield the checks of modules, in their order."""
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Check):
                yield value


# In the order in which they are shown.
CHECKS: Final = tuple(_checks_of(warehouse, books, connections, lists))


def evaluate(context: CheckContext) -> list[CheckResult]:
    """Ask every check about each list, each connection or the warehouse."""
    names = sorted({name.connection for name in context.lists})
    subjects: dict[Scope, Sequence[ListName]] = {
        "list": context.lists,
        "connection": [ListName(connection, "") for connection in names],
        "warehouse": [ListName("", "")],
    }
    results = list[CheckResult]()
    for check in CHECKS:
        results.extend(check.ask(context, about) for about in subjects[check.scope])
    return results

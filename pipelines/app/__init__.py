"""What the command line and Dagster do. `app.MODULE` is imported when it is first used."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.app import (
        breaks,
        breaks_file,
        checkup,
        close,
        connect,
        discover,
        export,
        maintenance,
        mapping,
        notify,
        plan,
        report,
        results,
        session,
        sync,
        trace,
        trace_figure,
        versions,
    )

__all__ = [
    "breaks",
    "breaks_file",
    "checkup",
    "close",
    "connect",
    "discover",
    "export",
    "maintenance",
    "mapping",
    "notify",
    "plan",
    "report",
    "results",
    "session",
    "sync",
    "trace",
    "trace_figure",
    "versions",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    return import_module(f"{__name__}.{name}")

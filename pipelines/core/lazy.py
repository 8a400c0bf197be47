"""Imports the modules of a package when they are first used."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType


def import_on_use(package: str) -> Callable[[str], ModuleType]:
    """Return what a package assigns to `__getattr__`, which Python asks for names it lacks."""

    def import_named(name: str) -> ModuleType:
        module = f"{package}.{name}"
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:  # the module is there, and needs what is not installed
                raise
            raise AttributeError(f"module `{package}` has no attribute `{name}`") from error

    return import_named

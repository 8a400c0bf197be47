"""Shelves: folders whose members are found by listing them.

Every file beside `base.py` declares exactly one value of the shelf's type. A new member is one new
file; nothing is registered by hand.
"""

import importlib
import pkgutil
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def members(package: str, path: Iterable[str], kind: type[T]) -> tuple[T, ...]:
    """Return what each file of a shelf declares, in the order of the files' names.

    Raises TypeError for a file that declares none or several: that is a defect of ours.
    """
    found = []
    for module in sorted(pkgutil.iter_modules(path), key=lambda each: each.name):
        if module.name == "base":
            continue
        namespace = vars(importlib.import_module(f"{package}.{module.name}"))
        declared = [value for value in namespace.values() if isinstance(value, kind)]
        if len(declared) != 1:
            raise TypeError(
                f"{package}.{module.name} declares {len(declared)} {kind.__name__}, not one"
            )
        found.append(declared[0])
    return tuple(found)

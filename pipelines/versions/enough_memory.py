"""Writes a version or books again with a larger memory limit, where DuckDB was refused memory."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from pipelines.core.errors import MemoryRefused
from pipelines.versions.stores import Stores

T = TypeVar("T")
logger = logging.getLogger(__name__)


def with_enough_memory(stores: Stores, write: Callable[[Stores], T]) -> T:
    """Return what `write` returns, which writes a version or books.

    Calls it again where DuckDB was refused memory, as often as there is a larger limit. Raises
    MemoryRefused where there is none.
    """
    while True:
        limit = stores.warehouse.memory_limit
        larger = limit.larger()
        try:
            return write(stores)
        except MemoryRefused:
            if larger is None:
                raise
        logger.warning(
            "DuckDB needs more than %s of memory for this version. It is built again with %s.",
            limit.text,
            larger.text,
        )
        stores = replace(stores, warehouse=replace(stores.warehouse, memory_limit=larger))

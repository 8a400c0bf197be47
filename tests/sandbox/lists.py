"""The lists of a dataset, as tests read them without HTTP.

Here: whole lists as bytes and as exact values. Not here: what is expected of them.
"""

import json
from decimal import Decimal
from typing import Any

from sandbox.data.dataset import Dataset

LISTS = ["plans", "partners", "organizations", "usage", "billing"]


def parsed(rows: list[bytes]) -> list[Any]:
    return [json.loads(row, parse_float=Decimal) for row in rows]


def everything(data: Dataset, name: str) -> list[bytes]:
    one = getattr(data, name)
    rows: list[bytes] = one.rows(0, one.count)
    return rows

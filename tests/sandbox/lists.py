"""The lists of a dataset, as tests read them without HTTP.

Here: whole lists as bytes and as exact values; awkward data, as in all tests that do not want
ordinary ones. Not here: what is expected of them.
"""

import json
from decimal import Decimal
from functools import partial
from typing import Any

from sandbox.data import dataset as data
from sandbox.data import plant as planting
from sandbox.data.dataset import Dataset

dataset = partial(data.dataset, awkward=True)
plant = partial(planting.plant, awkward=True)
LISTS = ["plans", "partners", "organizations", "usage", "billing"]


def parsed(rows: list[bytes]) -> list[Any]:
    return [json.loads(row, parse_float=Decimal) for row in rows]


def everything(data: Dataset, name: str) -> list[bytes]:
    one = getattr(data, name)
    rows: list[bytes] = one.rows(0, one.count)
    return rows

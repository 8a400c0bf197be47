"""Small lists as the sandbox makes them: 4 partners, 60 usage records and their 13 bills."""

import json
from typing import Any

from sandbox.data.dataset import dataset
from sandbox.data.names import FieldNames
from sandbox.data.sizes import Sizes

Lists = dict[str, list[dict[str, Any]]]


def usual(names: FieldNames = "usual") -> Lists:
    """Return the lists with their usual field names, or with others."""
    made = dataset(7, Sizes(4, 60, 12), field_names=names)
    lists = {"partners": made.partners, "usage": made.usage, "billing": made.billing}
    return {name: [*map(json.loads, each.rows(0, each.count))] for name, each in lists.items()}

"""One page of a list, taken apart so that a fault can change it without touching the rest.

Here: records as the bytes they were written in, and the envelope. Not here: any fault.
"""

import json
from typing import Any

import msgspec

Fields = dict[str, msgspec.Raw]


class Page:
    """Records, paging metadata (None leaves it out), and what else the envelope holds."""

    def __init__(self, body: bytes) -> None:
        members = msgspec.json.decode(body, type=Fields)
        data = msgspec.json.decode(members.pop("data"), type=list[msgspec.Raw])
        self.rows = [bytes(row) for row in data]
        self.pagination: dict[str, Any] | None = json.loads(bytes(members.pop("pagination")))
        self._others = members

    @property
    def offset(self) -> int:
        """Where the page begins."""
        return int(self.pagination["offset"]) if self.pagination else 0

    @property
    def has_more(self) -> bool:
        """Tell whether more items exist beyond the page."""
        return bool(self.pagination and self.pagination["has_more"])

    def say(self, **members: Any) -> None:
        """Change the paging metadata."""
        if self.pagination is not None:
            self.pagination |= members

    @staticmethod
    def fields(row: bytes) -> Fields:
        """Take a record apart into its fields, each as it was written."""
        return msgspec.json.decode(row, type=Fields)

    def remove(self, place: int, name: str) -> None:
        """Leave a field out of one record."""
        record = self.fields(self.rows[place])
        del record[name]
        self.rows[place] = msgspec.json.encode(record)

    def change(self, place: int, **fields: bytes) -> None:
        """Change or add fields of one record, given as JSON."""
        record = self.fields(self.rows[place])
        for name, value in fields.items():
            record[name] = msgspec.Raw(value)
        self.rows[place] = msgspec.json.encode(record)

    def encoded(self) -> bytes:
        """Write it as the service does."""
        members = [b'"data":[%b]' % b",".join(self.rows)]
        if self.pagination is not None:
            members.append(b'"pagination":' + json.dumps(self.pagination).encode())
        members += [b'"%b":%b' % (name.encode(), raw) for name, raw in self._others.items()]
        return b"{%b}" % b",".join(members)


def page_of(body: bytes) -> Page | None:
    """Read a body as a page, None if it is something else."""
    try:
        return Page(body)
    except (msgspec.DecodeError, KeyError, ValueError):
        return None

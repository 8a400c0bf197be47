"""Finds the pages of statements by their names, and reads the one file that lists all of them."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from pipelines.finance.statements.issues import INDEX, name_of_files
from pipelines.versions.stores import Stores


class StatementPages:
    """The newest page of each partner and month that was written when this was made."""

    def __init__(self, stores: Stores) -> None:
        files = set(stores.warehouse.store.list(stores.home.statements, "*/*"))
        numbers: dict[tuple[str, str], int] = {}
        self._newest: dict[str, str] = {}
        self._pages: dict[tuple[str, str], str] = {}
        for file in sorted(files):
            month = file.parent.name
            name, _separator, number = file.stem.rpartition("-")
            # What is kept of a statement is written last: without it, there is no statement.
            is_whole = file.with_suffix(".json") in files
            if file.suffix != ".html" or not is_whole or not number.isdigit():
                continue
            if int(number) > numbers.get((name, month), 0):
                numbers[name, month] = int(number)
                self._pages[name, month] = str(Path(month, file.name))
                self._newest[name] = self._pages[name, month]

    def find(self, connection: str, partner: str | None, month: str | None) -> str | None:
        """Return the page of a partner's month (2026-09), or of its newest one without a month.

        Its path begins at the folder of statements. None without a page.
        """
        if partner is None:
            return None
        name = name_of_files(connection, partner)
        return self._pages.get((name, month)) if month else self._newest.get(name)


def read_index(stores: Stores) -> list[dict[str, Any]]:
    """Return the rows of the list of all statements, newest first; none if there is no list."""
    file = stores.home.statements / INDEX
    rows: list[dict[str, Any]] = []
    if stores.warehouse.store.list(file.parent, file.name):
        # The next statement writes it again.
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, OSError):
            content = stores.warehouse.store.get(file).read_bytes()
            rows = msgspec.json.decode(content, type=list[dict[str, Any]])
    # Earlier releases knew nothing of sending, nor of breaks.
    return [{"sent": None, "sent_to": None, "breaks": [], **row} for row in rows]

"""What people note of statements that they sent: when, the recipient, and who noted it.

`statements/2026-09/NAME-001.sent-001` lies beside the statement and begins with its name: what
deletes the statement deletes it, too. Only `erase` changes a note. A statement that is sent again
has one more. Nothing but lists of statements reads them.
"""

from collections import defaultdict
from datetime import date, datetime
from itertools import chain
from pathlib import Path
from typing import Final

from pipelines.core.errors import StorageFailed
from pipelines.finance.statements.kept import Kept, KeptUnreadable, read_kept, write_kept
from pipelines.versions.erase import ERASED
from pipelines.versions.stores import Stores

END: Final = ".sent-"
COMMAND: Final = "`partner-sync statement --sent`"
UNREADABLE: Final = "a note cannot be read"


class SentNote(Kept):
    """A person's word that a statement was sent on a day, and to which recipient."""

    day: date
    to: str
    noted_at: datetime
    noted_by: str


class SentNotes:
    """All notes that were there when this was made, by statement: its path without an end.

    `unreadable` says by file why a note cannot be read.
    """

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._notes = defaultdict[Path, dict[Path, SentNote]](dict)
        self._numbers = defaultdict[Path, int](int)
        self.unreadable = dict[Path, str]()
        for file in sorted(stores.warehouse.store.list(stores.home.statements, f"*/*{END}*")):
            if file.name.startswith("."):  # it is being written, or a killed command left it
                continue
            statement = file.with_suffix("")
            self._numbers[statement] = max(self._numbers[statement], _number_of(file))
            try:
                self._notes[statement][file] = read_kept(stores, file, SentNote)
            except KeptUnreadable as why:
                self.unreadable[file] = str(why)

    def of(self, statement: Path) -> list[SentNote]:
        """Return the notes of a statement, the earliest day first."""
        notes = self._notes[statement].values()
        return sorted(notes, key=lambda note: (note.day, note.noted_at))

    def shown(self, statement: Path) -> tuple[str | None, str | None]:
        """Return the last day on which a statement was sent, and the recipient; None: not noted.

        If it was sent more than once, each recipient has its day.
        """
        notes = self.of(statement)
        to = [note.to if len(notes) == 1 else f"{note.to} ({note.day:%d %b %Y})" for note in notes]
        if any(file.with_suffix("") == statement for file in self.unreadable):
            to.append(UNREADABLE)
        return (f"{notes[-1].day}" if notes else None), "; ".join(to) or None

    def add(self, statement: Path, note: SentNote) -> None:
        """Write a note of a statement, unless there is one that says the same.

        The caller holds the lock `export`. Raises StorageFailed.
        """
        if any((note.day, note.to) == (known.day, known.to) for known in self.of(statement)):
            return
        self._numbers[statement] += 1
        file = statement.with_name(f"{statement.name}{END}{self._numbers[statement]:03}")
        write_kept(self._stores, file, note, COMMAND)
        self._notes[statement][file] = note

    def require_readable(self) -> None:
        """Raise StorageFailed if a note cannot be read, so that nobody knows what it says."""
        for file, why in self.unreadable.items():
            raise StorageFailed(
                f"{file} cannot be read: {why}. Whether it has the value is not known. No record "
                "was erased.",
                "Restore the file from a backup, or delete it, then erase again.",
            )

    def having(self, text: str) -> list[tuple[Path, SentNote]]:
        """Return the notes whose recipient contains a value, with their files."""
        notes = chain.from_iterable(notes.items() for notes in self._notes.values())
        return [(file, note) for file, note in notes if text in note.to]

    def erase(self, text: str) -> list[Path]:
        """Replace a value in recipients; return the files. Raises StorageFailed."""
        files = []
        for file, note in self.having(text):
            note.to = note.to.replace(text, ERASED)
            write_kept(self._stores, file, note, COMMAND)
            files.append(file)
        return files


def _number_of(file: Path) -> int:
    number = file.suffix.removeprefix(END)
    return int(number) if number.isdigit() else 0

"""Here: messages that are the same but for the list that they are about are said once."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MOST_NAMES: Final = 5  # of connections or streams in one message; the others are counted
NAME: Final = "\0"  # in place of a name; no message has this character


@dataclass(frozen=True)
class About:
    """A message about a list, a connection (`stream` empty), or neither."""

    connection: str
    stream: str
    message: str
    remedy: str
    kind: str = ""  # messages of other kinds are never the same

    @property
    def place(self) -> str:
        """`connection/stream`, as far as there is one."""
        return "/".join(filter(None, (self.connection, self.stream)))

    def without_names(self) -> tuple[str, str, str]:
        """Return what two messages that differ only in names have in common."""
        # A name that is a number is like any other number of a message.
        given = [name for name in (self.connection, self.stream) if name and not name.isdigit()]
        names = [re.escape(name) for name in given]
        if not names:
            return self.kind, self.message, self.remedy
        # A whole name only: a connection may be called `a`.
        name = re.compile(rf"(?<![\w-])(?:{'|'.join(names)})(?![\w-])")
        return self.kind, name.sub(NAME, self.message), name.sub(NAME, self.remedy)


def said_once(messages: Iterable[About]) -> list[tuple[str, About]]:
    """Return each message once, in their order, with the places that it is about.

    Of messages that are the same but for names, it is the first, and the places say which others
    there are.
    """
    groups = dict[tuple[str, str, str], list[About]]()
    for message in messages:
        groups.setdefault(message.without_names(), []).append(message)
    said = list[tuple[str, About]]()
    for (_kind, text, remedy), group in groups.items():
        places = _places(group)
        if len(group) > 1 and NAME in text + remedy:
            places += f" (as for {group[0].place})"
        said.append((places, group[0]))
    return said


def _places(group: list[About]) -> str:
    """Return what messages are about: some lists of each of some connections, or single lists."""
    if len(group) == 1:
        return group[0].place
    connections = _once(message.connection for message in group)
    streams = _once(message.stream for message in group)
    places = _once(message.place for message in group)
    if len(places) < len(connections) * len(streams):
        return _named(places, "list")
    return ": ".join(filter(None, (_named(connections, "connection"), _named(streams, "list"))))


def _once(names: Iterable[str]) -> list[str]:
    """Return each name once, in their order, without empty ones."""
    return list(dict.fromkeys(name for name in names if name))


def _named(names: list[str], what: str) -> str:
    """Return names with commas between them; how many there are, if these are not all."""
    shown = ", ".join(names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    if more <= 0:
        return shown
    return f"{len(names):,} {what}s, {shown} and {more:,} more"

"""Keeps commands out of what an accountant reads: they stand in one section of the page.

A text of the page may name a command, a setting or a table in backticks. The sentences that do so
become notes for the operator, in the order of the page; the text has a link to them instead.
"""

import re
from typing import Final

from markupsafe import Markup, escape

from pipelines.core.text import printable

CODE: Final = re.compile(r"`([^`]+)`")
# The end of a sentence, which is not in backticks.
SENTENCE: Final = re.compile(r"((?:`[^`]*`|[^`])+?(?:[.!?](?=\s|$)|$))\s*")


class OperatorNotes:
    """The notes of one page; the same note is there once."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> Markup:
        """Add a note; return a link to it."""
        if text not in self.notes:
            self.notes.append(text)
        number = self.notes.index(text) + 1
        link = f'<a href="#note-{number}" title="For the operator">note&nbsp;{number}</a>'
        return Markup(f'<span class="note"> ({link})</span>')  # noqa: S704 - a number

    def said(self, text: str) -> Markup:
        """Return a text, with a link in place of its sentences that name code."""
        parts = SENTENCE.findall(text)
        plain = " ".join(part for part in parts if not CODE.search(part))
        with_code = " ".join(part for part in parts if CODE.search(part))
        shown = escape(printable(plain))
        return shown + self.note(with_code) if with_code else shown


def mark_code(text: str) -> Markup:
    """Show what is in backticks as code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(printable(text)))))  # noqa: S704 - escaped

"""The numbers of the formats that this partner-sync writes; it reads all earlier ones."""

from collections.abc import Mapping

from pipelines.archive import lines
from pipelines.finance import statements
from pipelines.finance.reconcile import close_copy
from pipelines.metadata import engine
from pipelines.warehouse import books, formats

Numbers = Mapping[str, int | str | None]


def written() -> dict[str, int | str | None]:
    """Return the number of each format; of the metadata database, its revision."""
    return {
        "scan_file": lines.FORMAT,
        "version": formats.newest(),
        "books": books.FORMAT,
        "metadata": engine.HEAD,
        "close": close_copy.FORMAT,
        "statement": statements.FORMAT,
    }


def sentence(numbers: Numbers) -> str:
    """Return numbers of formats as a sentence, with that of the published version if it differs."""
    named = {name: str(number) for name, number in numbers.items()}
    published = named.pop("published_version", "None")
    if published not in {"None", named["version"]}:
        named["version"] += f" (published: {published})"
    parts = [f"{name.replace('_', ' ')} {number}" for name, number in named.items()]
    return f"Formats: {', '.join(parts)}."

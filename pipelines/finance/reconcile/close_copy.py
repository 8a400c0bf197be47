"""The copy of a closed month: proves that it is what was signed off.

Not here: how it is written (finance.closing), how its rows are compared with those of today
(closed_rows).
"""

import hashlib
import json
from pathlib import Path
from typing import Any, Final

from pipelines.core.errors import ArchiveDamaged, NewerFormat
from pipelines.metadata.tables import Close

# Of a manifest; one that does not say a number has format 1. Copies of format 3 can be verified
# without partner-sync; earlier ones have no balances and no sums. Those of format 4 may have a
# journal, and open items.
FORMAT: Final = 4
WITH_BALANCES: Final = 3
MANIFEST: Final = "manifest.json"
MAPPING: Final = "mapping.toml"
PREVIOUS: Final = "previous.json"
PAGE: Final = "report.html"
ENTRIES: Final = "entries.parquet"
OPEN_ITEMS: Final = "open_items.parquet"
JOURNAL: Final = "journal.csv"
STATED: Final = (
    "number", "preparer", "reviewer", "note", "version", "approval", "accept_open",
    "chosen_connections",
)  # fmt: skip


def stated(close: Close) -> dict[str, Any]:
    """Return what a manifest says of a close."""
    return {name: getattr(close, name) for name in STATED}


def why_otherwise(folder: Path, close: Close) -> str:
    """Return what the manifest of an intact copy says otherwise than a close; empty if nothing.

    Where another user approves, the manifest has no reviewer. Earlier formats say less.
    """
    manifest = json.loads((folder / MANIFEST).read_bytes())
    wrong = []
    for name, value in stated(close).items():
        is_stated = name in manifest and not (name == "reviewer" and not manifest[name])
        if is_stated and manifest[name] != value:
            wrong.append(name)
    if not wrong:
        return ""
    return f"{folder / MANIFEST} says otherwise than the metadata database: {', '.join(wrong)}."


def require_intact(folder: Path, close: Close) -> None:
    """Raise ArchiveDamaged if the copy of a month is not what was signed off, or NewerFormat."""
    digests = {MANIFEST: close.manifest_sha256}
    if digest_of(folder / MANIFEST) == close.manifest_sha256:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        _require_known_format(folder, manifest)
        digests = manifest["sha256"]
    for name, digest in digests.items():
        if digest_of(folder / name) != digest:
            raise ArchiveDamaged(
                f"The copy of {close.month:%Y-%m} is damaged: {folder / name} is missing, was "
                "changed after the month was closed, or cannot be read.",
                "Restore it from a backup, then run `partner-sync reconcile`.",
            )


def format_of(folder: Path) -> int:
    """Return the number of the format of a copy, which is intact."""
    return _format_in(json.loads((folder / MANIFEST).read_bytes()))


def _format_in(manifest: dict[str, Any]) -> int:
    number: int = manifest.get("format", 1)
    return number


def _require_known_format(folder: Path, manifest: dict[str, Any]) -> None:
    number = _format_in(manifest)
    if number > FORMAT:
        raise NewerFormat(
            f"The copy {folder} has format {number}, and this partner-sync reads formats up to "
            f"{FORMAT}: a newer one wrote it. The month is not compared with it; the copy was not "
            "changed.",
            "Install the newer partner-sync.",
        )


def digest_of(file: Path) -> str:
    """Return the digest of a file; empty where it is missing or cannot be read."""
    try:
        with file.open("rb") as source:
            return hashlib.file_digest(source, "sha256").hexdigest()
    except OSError:
        return ""

"""What a stream is: one list endpoint of the service, as the interface document shows it.

No fields of records live here: those of usage and billing are not shown, so none is assumed.
"""

import re
from dataclasses import dataclass, replace

from pipelines.settings import StreamSettings, Surface

GENERAL_LIMIT = 100  # Paging limits: list endpoints in general


@dataclass(frozen=True)
class Stream:
    """One list endpoint.

    `limit` is the largest page allowed (Paging limits, or the interface description), in records.
    `singular` is what one record is called, the stem of the names its key may have; `likely_key` is
    the name that the interface description speaks for. `surface` says whose credentials open it.
    """

    name: str
    path: str
    limit: int
    singular: str
    description: str
    surface: Surface = "partner"
    likely_key: str | None = None

    @property
    def key_candidates(self) -> tuple[str, ...]:
        """Names that the identifying field may have, the likeliest first."""
        stem = re.sub(r"[-_]+(\w)", lambda match: match[1].upper(), self.singular)
        names = ("id", f"{stem}Id", f"{self.singular.replace('-', '_')}_id")
        likely = [self.likely_key] if self.likely_key else []
        return tuple(dict.fromkeys((*likely, *names)))

    def within(self, limit: int | None) -> "Stream":
        """Return the stream with pages of at most `limit` records."""
        return self if limit is None else replace(self, limit=min(self.limit, limit))


def configured(name: str, settings: StreamSettings) -> Stream:
    """Return the stream that the settings switch on; its path has to be set."""
    path = settings.path or ""
    return Stream(
        name=name,
        path=path,
        limit=settings.limit or GENERAL_LIMIT,
        singular=singular(name),
        description=f"Records of {path}; switched on in the settings.",
        surface=settings.surface,
    )


def fits_a_table(name: str) -> bool:
    """Tell whether tables can be called so, without meeting others: `__` names child tables."""
    plain = re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) is not None
    return plain and "__" not in name and not name.endswith(("_", "_seen"))


def singular(name: str) -> str:
    """Return what one record of a list is called: invoices -> invoice, companies -> company."""
    if name.endswith("ies") and len(name) > len("series"):
        return name[:-3] + "y"
    if re.search(r"(ss|[st]us|x|z|ch|sh)es$", name):
        return name[:-2]
    return name[:-1] if re.search(r"[^su]s$", name) else name

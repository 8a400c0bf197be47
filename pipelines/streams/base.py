"""What a stream is: one list endpoint of the service, as the interface document shows it.

No fields of records live here: those of usage and billing are not shown, so none is assumed.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Stream:
    """One list endpoint.

    `limit` is the largest page the document allows (Paging limits), in records. `singular` is what
    one record is called, the stem of the names its key may have.
    """

    name: str
    path: str
    limit: int
    singular: str
    description: str

    @property
    def key_candidates(self) -> tuple[str, ...]:
        """Names that the identifying field may have, the likeliest first."""
        stem = re.sub(r"[-_]+(\w)", lambda match: match[1].upper(), self.singular)
        return ("id", f"{stem}Id", f"{self.singular.replace('-', '_')}_id")

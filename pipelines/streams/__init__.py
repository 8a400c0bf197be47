"""The lists we read, one file each.

To add one: a new file here that declares one `Stream`. Fetching, landing, assets and the command
line derive from this list. A stream that the interface document does not show belongs in the
settings, not here.
"""

from pipelines.shelf import members
from pipelines.streams.base import Stream

STREAMS = members(__name__, __path__, Stream)

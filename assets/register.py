"""`python -m assets.register`: make a DAGSTER_HOME ready before its processes start.

Here: its databases, which two processes that start at once would both create, and the connections'
names. Not here: the names that come later (the sensor `connections`, the schedule).
"""

import sys

import dagster as dg

from assets.partitions import register
from pipelines.errors import PartnerSyncError


def main() -> int:
    """Register what is configured; return the exit code of a program."""
    try:
        with dg.DagsterInstance.get() as instance:
            names = register(instance)
    except PartnerSyncError as error:
        sys.stderr.write(f"no connection was registered: {error}\n")
        return 2
    sys.stdout.write(f"connections that can be chosen in Dagster: {', '.join(names)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

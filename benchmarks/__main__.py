"""`python -m benchmarks [NAME]…`: measure, and print Markdown for docs/benchmarks.md."""

import sys

from benchmarks import (
    crowd,
    landing,
    lanes,
    machine,
    pages,
    paths,
    publishing,
    rate,
    reading,
    reconciling,
    replaying,
    scale,
    size,
    startup,
)

MEASURES = {
    "rate": rate.measure,
    "lanes": lanes.measure,
    "paths": paths.measure,
    "reading": reading.measure,
    "landing": landing.measure,
    "replay": replaying.measure,
    "reconciliation": reconciling.measure,
    "size": size.measure,
    "pages": pages.measure,
    "crowd": crowd.measure,
    "publishing": publishing.measure,
    "startup": startup.measure,
    "scale": scale.measure,
}


def main(names: list[str]) -> None:
    """Print the machine and the tables asked for, all where none is named."""
    print(machine.named())
    for name in names or MEASURES:
        print(f"\n## {name}\n\n{MEASURES[name]()}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

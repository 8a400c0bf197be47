"""`python -m benchmarks NAME [OPTION]…`: measure, and print Markdown for docs/benchmarks.md."""

import sys
from collections.abc import Callable

from benchmarks import accounts, connections, decision, limiter, own, rate, startup, sync

MEASURES: dict[str, Callable[[list[str]], None]] = {
    "accounts": accounts.main,
    "connections": connections.main,
    "decision": decision.main,
    "own": own.main,
    "limiter": limiter.main,
    "rate": rate.main,
    "startup": startup.main,
    "sync": sync.main,
}


def main(arguments: list[str]) -> None:
    """Run the measurement that is named first, with the options that follow."""
    if arguments and arguments[0] not in MEASURES:
        raise SystemExit(f"usage: python -m benchmarks {{{','.join(MEASURES)}}} [--help]")
    for name in arguments[:1] or MEASURES:
        MEASURES[name](arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])

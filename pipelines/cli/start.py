"""Starts the program `partner-sync`: signals are noted before anything large is imported."""

from importlib import import_module

from pipelines.core import stop


def main() -> None:
    """Run the program. No signal from here on is lost or ends in a traceback."""
    stop.listen()
    import_module("pipelines.cli.main").main()


if __name__ == "__main__":
    main()

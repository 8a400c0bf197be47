"""Where `partner-sync` begins; the program itself is `app`.

Its parts take a moment to load: Ctrl-C meanwhile ends it without a traceback.
"""

import sys

try:
    from pipelines.cli.app import main
except KeyboardInterrupt:
    sys.stderr.write("interrupted: nothing was begun\n")
    sys.exit(130)

__all__ = ["main"]

if __name__ == "__main__":
    main()

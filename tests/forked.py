"""Runs `partner-sync` in processes that are forked from one that has imported what they use.

The imports take more than a second of CPU time, most commands a tenth of that. Each process imports
`pipelines.cli` itself, which looks at its terminal then. Not here: the start of the program, which
tests/end_to_end and tests/cli/test_setup.py run.
"""

import os
import resource
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pkgutil import iter_modules

from pipelines import app

CONTEXT = get_context("forkserver")  # it forks from a process without threads
OURS = [each.name for each in iter_modules(app.__path__, "pipelines.app.")]
IMPORTED_LATE = ["alembic.command", "httpcore", "pandas", "pyarrow.json", "pytz", "typer"]
CONTEXT.set_forkserver_preload([*OURS, *IMPORTED_LATE])
WAIT_SECONDS = 300  # on a busy machine


def run_forked(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    terminal: bool = False,
    largest_file: int | None = None,
) -> tuple[int, str]:
    """Run a command, on a pseudo-terminal or into a pipe; return its exit code and what it wrote.

    It can write no file above a size (bytes), as on a full disk. The variables are added to those
    of this process.
    """
    ours, theirs = os.openpty() if terminal else os.pipe()
    with Connection(theirs) as output:  # because a connection can be sent to the other process
        whole = {**os.environ, **environment}
        process = CONTEXT.Process(target=_run, args=([*arguments], whole, output, largest_file))
        process.start()
    received = _read(ours)
    process.join(WAIT_SECONDS)
    assert process.exitcode is not None
    return process.exitcode, received.decode()


def _read(file: int) -> bytes:
    received = []
    try:
        while content := os.read(file, 65536):
            received.append(content)
    except OSError:  # nobody has the other side of a terminal open any more
        pass
    finally:
        os.close(file)
    return b"".join(received)


def _run(
    arguments: list[str], environment: dict[str, str], output: Connection, largest_file: int | None
) -> None:
    """Become the program, with files of its own as input and output."""
    is_terminal = os.isatty(output.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(output.fileno() if is_terminal else nothing, 0)
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    output.close()
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - until the process ends
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.argv = ["partner-sync", *arguments]
    os.environ.clear()
    os.environ.update(environment)
    if largest_file is not None:
        sys.dont_write_bytecode = True  # a part of a file would remain, and fail other programs
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))
    import_module("pipelines.cli.start").main()

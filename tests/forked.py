"""Runs `partner-sync` and the sandbox in processes forked from one that has imported what they use.

The imports take more than a second of CPU time, most commands a tenth of that. Each process runs
the program as `python -m` does; `pipelines.cli`, which looks at its terminal, is not yet imported.
"""

import os
import resource
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple

PIPELINES = Path(__file__).parents[1] / "pipelines"
OURS = [
    each.name
    for package in ("app", "finance")
    for each in iter_modules([str(PIPELINES / package)], f"pipelines.{package}.")
]
SANDBOX = ["sandbox.changes", "sandbox.server", "sandbox.service", "sandbox.tls"]
IMPORTED_LATE = ["alembic.command", "httpcore", "pandas", "pyarrow.json", "pytz", "typer"]
CONTEXT = get_context("forkserver")  # it forks from a process without threads
CONTEXT.set_forkserver_preload([*OURS, *SANDBOX, *IMPORTED_LATE])
WAIT_SECONDS = 300  # on a busy machine


class Program(NamedTuple):
    """A module, its arguments, its whole environment, and the file or terminal that it writes to.

    It can write no file above a size (bytes), as on a full disk. Without `with_errors`, standard
    error is that of this process.
    """

    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    output: Connection  # because a connection can be sent to the other process
    largest_file: int | None = None
    with_errors: bool = True


class Forked:
    """A process that was forked, used as a `subprocess.Popen` is."""

    def __init__(self, program: Program) -> None:
        self._process = CONTEXT.Process(target=_run, args=(program,), daemon=True)
        self._process.start()
        assert self._process.pid
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def wait(self, timeout: float = WAIT_SECONDS) -> int:
        """Wait for its end; return the exit code. Raises TimeoutExpired after so many seconds."""
        self._process.join(timeout)
        code = self.returncode
        if code is None:
            raise subprocess.TimeoutExpired("forked", timeout)
        return code


def run_forked(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    terminal: bool = False,
    largest_file: int | None = None,
) -> tuple[int, str]:
    """Run `partner-sync`, on a pseudo-terminal or into a pipe; return its exit code and its output.

    The variables are added to those of this process.
    """
    ours, theirs = os.openpty() if terminal else os.pipe()
    whole = {**os.environ, **environment}
    with Connection(theirs) as output:
        program = Program("pipelines.cli.start", arguments, whole, output, largest_file)
        process = Forked(program)
    received = _read(ours)
    return process.wait(), received.decode()


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


def _run(program: Program) -> None:
    """Become the program, with files of its own as input and output."""
    is_terminal = os.isatty(program.output.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(program.output.fileno() if is_terminal else nothing, 0)
    os.dup2(program.output.fileno(), 1)
    if program.with_errors:
        os.dup2(program.output.fileno(), 2)
    program.output.close()
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - until the process ends
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(program.environment)
    sys.argv = [program.module, *program.arguments]
    if program.largest_file is not None:
        sys.dont_write_bytecode = True  # a part of a file would remain, and fail other programs
        limits = (program.largest_file, resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    runpy.run_module(program.module, run_name="__main__", alter_sys=True)

"""Our programs as processes of their own that begin with their imports done.

A start costs more than a second of CPU, nearly all of it imports, and the tests start hundreds.
So one server imports, and forks for each start. Here: starting, what is printed, the end. Not here:
that `python -m sandbox` and `partner-sync` start as a user starts them (test_command,
test_program, the README's demo).
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from threading import Thread
from typing import TextIO

from pipelines.cli import app
from sandbox.__main__ import command

CONTEXT = multiprocessing.get_context("forkserver")
# What our programs' libraries import when they are first used: pandas as soon as DuckDB is given a
# parameter. The last one keeps the rest out of the garbage collector's sight.
LATE = (
    *("anyio._backends._asyncio", "encodings.ascii", "httpcore", "pandas", "pyarrow.dataset"),
    *("pyarrow.pandas_compat", "pydantic.v1.dataclasses", "typer._click.decorators"),
    *("uvicorn.lifespan.off", "uvicorn.loops.auto", "uvicorn.loops.uvloop"),
    *("uvicorn.protocols.http.auto", "tests.frozen"),
)
CONTEXT.set_forkserver_preload([__name__, *LATE])
Main = Callable[[list[str]], None]


@dataclass(frozen=True)
class Done:
    """What a program came to."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Forked:
    """A process that runs one of our programs."""

    process: ForkServerProcess
    stdout: TextIO
    stderr: TextIO | None

    @property
    def pid(self) -> int:
        """Its number."""
        assert self.process.pid is not None
        return self.process.pid

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self, seconds: float = 60) -> int:
        """Wait for its end; return its exit code."""
        self.process.join(seconds)
        assert self.process.exitcode is not None, f"still running after {seconds} s"
        return self.process.exitcode

    def communicate(self, seconds: float = 60) -> Done:
        """Return what it prints until it ends, which is asked for when the seconds are over."""
        told: dict[str, str] = {}
        streams = {"stdout": self.stdout, "stderr": self.stderr}
        readers = [
            Thread(target=lambda name=name, stream=stream: told.update({name: stream.read()}))
            for name, stream in streams.items()
            if stream
        ]
        for reader in readers:
            reader.start()
        try:
            code = self.wait(seconds)
        finally:
            self.process.kill()
            for reader in readers:
                reader.join()
            self.close()
        return Done(code, told["stdout"], told.get("stderr", ""))

    def close(self) -> None:
        """Close our ends of what it prints."""
        self.stdout.close()
        if self.stderr:
            self.stderr.close()


def sandbox(arguments: list[str]) -> None:
    """Be `python -m sandbox`."""
    command(arguments, prog_name="sandbox")


def partner_sync(arguments: list[str]) -> None:
    """Be `partner-sync`."""
    sys.argv = ["partner-sync", *arguments]
    app.main()


def start(
    main: Main,
    arguments: list[str],
    environment: Mapping[str, str],
    *,
    cwd: Path | None = None,
    stderr: bool = False,
) -> Forked:
    """Start a program; what it says on stderr is ours to read, or goes where our own does."""
    ours, theirs = zip(*(CONTEXT.Pipe(duplex=False) for _ in range(1 + stderr)), strict=True)
    process = CONTEXT.Process(
        target=_begin, args=(main, arguments, dict(environment), cwd, theirs), daemon=True
    )
    process.start()
    for each in theirs:
        each.close()
    files = [open(os.dup(each.fileno()), encoding="utf-8") for each in ours]  # noqa: PTH123, SIM115
    for each in ours:
        each.close()
    return Forked(process, files[0], files[1] if stderr else None)


def _begin(
    main: Main,
    arguments: list[str],
    environment: dict[str, str],
    cwd: Path | None,
    outputs: tuple[Connection, ...],
) -> None:
    for number, each in enumerate(outputs, start=1):
        os.dup2(each.fileno(), number)
        each.close()
    os.environ.clear()
    os.environ.update(environment)
    if cwd:
        os.chdir(cwd)
    main(arguments)

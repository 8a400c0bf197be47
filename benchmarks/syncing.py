"""One sync as its user runs it: a process of its own against a sandbox of its own."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipelines.cli import sandbox
from pipelines.cli.sandbox import Service

PROGRAM = str(Path(sys.executable).with_name("partner-sync"))


@dataclass(frozen=True)
class Cost:
    """What a finished process took: seconds of wall clock and processor, peak memory in MB."""

    wall: float
    cpu: float
    peak: float


@contextmanager
def served(*options: str, environment: dict[str, str] | None = None) -> Iterator[Service]:
    """Start a sandbox and name a fresh home for it."""
    with tempfile.TemporaryDirectory() as home, sandbox.running(*options) as service:
        extra = {"PARTNER_SYNC_HOME": home} | (environment or {})
        yield Service(service.url, service.environment | extra)


def synced(service: Service, *options: str) -> Cost:
    """Run `partner-sync sync` once; raise CalledProcessError where it fails."""
    return run([PROGRAM, "sync", *options], service)


def run(command: list[str], service: Service) -> Cost:
    """Run a program in a service's environment; raise CalledProcessError where it fails."""
    begun = time.monotonic()
    process = subprocess.Popen(
        command,
        env=os.environ | service.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return _cost(time.monotonic() - begun, usage)


def _cost(wall: float, usage: resource.struct_rusage) -> Cost:
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)

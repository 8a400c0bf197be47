"""Here: names of processes, and whether the process with a name lives.

With SQLite, the operating system of this machine is asked, and a file that each process holds: one
in another container has an id that means nothing here. On PostgreSQL, each process holds a lock
with its name in a session (server_session): it lives as long as the session does.
"""

import os
import socket
import sys
from collections.abc import Collection
from contextlib import ExitStack, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary, finalize

import psutil
from sqlalchemy import Connection, text

from pipelines.core.files import claimed, is_left_over, storing
from pipelines.core.text import printable

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
LOCKS = "locks"  # the folder of locks, beside the database
# A key of 64 bits is shown in two parts. Locks are of one database, in whichever schema.
HELD_KEYS = """
(SELECT locks.pid, locks.mode, (locks.classid::bigint << 32) | locks.objid::bigint AS key
FROM pg_locks AS locks JOIN pg_database AS databases ON databases.oid = locks.database
WHERE locks.locktype = 'advisory' AND locks.objsubid = 1 AND locks.granted
    AND databases.datname = current_database()) AS held
"""
SELECT_LIVING = text(f"SELECT DISTINCT held.key FROM {HELD_KEYS} WHERE held.key = ANY(:keys)")


def this_process() -> str:
    """Return a name of this process that no later process has: host, id, start."""
    return _name_of(os.getpid())


# The limiter asks with each request. A fork has another id.
@cache
def _name_of(process_id: int) -> str:
    return f"{socket.gethostname()}:{process_id}:{_start_of(process_id)}"


class HeldName:
    """Holds the name of this process by a file, until nobody needs the object any more."""

    def __init__(self, file: Path) -> None:
        held = ExitStack()
        with storing(file):
            held.enter_context(claimed(file))
        finalize(self, _free, held, file, os.getpid())


def _free(held: ExitStack, file: Path, process_id: int) -> None:
    if os.getpid() != process_id:
        return  # a fork has this object, too
    with suppress(OSError):
        file.unlink(missing_ok=True)
    held.close()


_HELD: WeakValueDictionary[Path, HeldName] = WeakValueDictionary()
_HOLDING = Lock()


def hold_name(folder: Path, name: str) -> HeldName:
    """Hold a name in a folder of locks. All who do so in this process share it.

    Raises StorageFailed.
    """
    file = _file_of(folder.resolve(), name)
    with _HOLDING:
        held = _HELD.get(file)
        if held is None:
            held = HeldName(file)
            _HELD[file] = held
        return held


def _file_of(folder: Path, name: str) -> Path:
    """Return the file that the process with a name holds."""
    return folder / f"{sha256(name.encode()).hexdigest()[:16]}.process"


def this_command() -> str:
    """Return the command of this process, without its further words."""
    # They may be something that is to be erased.
    return printable(" ".join((Path(sys.argv[0]).name, *sys.argv[1:2])))


def lock_key(name: str) -> int:
    """Return the number of an advisory lock of PostgreSQL, by its name."""
    return int.from_bytes(sha256(name.encode()).digest()[:8], signed=True)


def living(connection: Connection, owners: Collection[str]) -> set[str]:
    """Return those of the processes that live, by their names from `Metadata.this_process`."""
    if connection.dialect.name == "sqlite":
        folder = Path(str(connection.engine.url.database)).parent / LOCKS
        return {owner for owner in owners if _is_alive_here(folder, owner)}
    keys = {lock_key(owner): owner for owner in owners}
    held = connection.scalars(SELECT_LIVING, {"keys": list(keys)})
    return {keys[key] for key in held}


def is_alive(connection: Connection, owner: str) -> bool:
    """Return whether one process lives."""
    return owner in living(connection, [owner])


def this_boot() -> str:
    """Return a name of the time since the machine was started."""
    with suppress(OSError):
        return BOOT_ID.read_text().strip()
    return f"{psutil.boot_time():.0f}"


def _is_alive_here(folder: Path, owner: str) -> bool:
    host, process_id, start = owner.rsplit(":", 2)
    if host == socket.gethostname() and _start_of(int(process_id)) == start:
        return True
    # In a container, host and ids are its own. A container that is started again has another host.
    return not is_left_over(_file_of(folder, owner))


def _start_of(process_id: int) -> str | None:
    """Return when a process started: which boot, and seconds after it. None: it does not run."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(process_id)
        # Both are times of day, and move together where the clock is set.
        machine_start = psutil.boot_time()
        # One that only waits to be reaped does nothing any more.
        if process.status() != psutil.STATUS_ZOMBIE:
            return f"{this_boot()}+{process.create_time() - machine_start:.2f}"
    return None

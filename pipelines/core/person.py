"""Whose process this is: the name that decisions keep, and the folder that `~` stands for."""

import getpass
import os
import pwd
from pathlib import Path

from pipelines.core.errors import ConfigurationError
from pipelines.core.text import from_system, has_undecoded

NO_LOGIN = 2**32 - 1  # as the kernel says it


def user_name() -> str:
    """Return the name of the user; `uid 12345` where the system has none for this number.

    Containers often run under a number that no file of users knows.
    """
    # Variables such as LOGNAME count first, then the system's users.
    try:
        name = from_system(getpass.getuser())
    except (KeyError, OSError, ImportError, UnicodeDecodeError):
        return f"uid {os.getuid()}"
    return name.strip() or f"uid {os.getuid()}"


def name_of(user_id: int) -> str:
    """Return the name that the system has for a user, whatever variables of the environment say."""
    try:
        return from_system(pwd.getpwuid(user_id).pw_name)
    except (KeyError, UnicodeDecodeError):
        return f"uid {user_id}"


def is_known(user_id: int) -> bool:
    """Return whether the system has a user of this number."""
    try:
        pwd.getpwuid(user_id)
    except (KeyError, UnicodeDecodeError):
        return False
    return True


def login_id() -> int | None:
    """Return the user who logged in, whoever became another one since; None if none is recorded."""
    try:
        found = int(Path("/proc/self/loginuid").read_text())
    except (OSError, ValueError):
        return None
    return None if found == NO_LOGIN else found


def expand_user(path: Path) -> Path:
    """Return a path with the home folder for `~`. Raises ConfigurationError without a folder."""
    try:
        expanded = path.expanduser()
    except RuntimeError:
        raise ConfigurationError(
            f"{path.parts[0]} stands for no folder: this user has no home folder, and HOME is not "
            "set. Nothing was changed.",
            "Name a full path, or set HOME.",
        ) from None
    return expanded


def usable_path(path: Path) -> Path:
    """Return a path as DuckDB and SQLite can open it. Raises ConfigurationError for another one."""
    if has_undecoded(str(path)):
        raise ConfigurationError(
            f"The path {str(path)!a} is not text in the encoding of this locale. Nothing was "
            "changed.",
            "Rename the folder, or set the environment variable PYTHONUTF8=1.",
        )
    return path

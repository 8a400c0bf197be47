"""The homes in one folder (`PARTNER_SYNC_HOMES`)."""

import stat
from pathlib import Path
from typing import Final

from pipelines.config.home import Home
from pipelines.config.values import PREFIX
from pipelines.core.errors import ConfigurationError

HOMES: Final = f"{PREFIX}HOMES"  # names the folder


def find_homes(folder: Path) -> dict[str, Home]:
    """Return the homes in a folder, by the names of their folders. Each has a folder `config`.

    One that cannot be read is among them: whoever opens it says why. Raises ConfigurationError for
    a folder that has no homes.
    """
    folder = folder.absolute()
    try:
        found = {each.name: Home(each) for each in sorted(folder.iterdir()) if _is_home(each)}
    except OSError as error:
        raise ConfigurationError(
            f"The folder {folder} cannot be read: {error.strerror}. Nothing was written.",
            f"Set {HOMES} to the folder that holds the homes.",
        ) from error
    if not found:
        raise ConfigurationError(
            f"There is no home in {folder}: no folder in it has a folder `config`. Nothing was "
            "written.",
            f"Set {HOMES} to the folder that holds the homes.",
        )
    return found


def _is_home(folder: Path) -> bool:
    try:
        return stat.S_ISDIR((folder / "config").stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True

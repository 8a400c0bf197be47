"""Make a home of a backup again: python3 restore.py BACKUP HOME.

HOME must be empty or not exist: nothing is ever overwritten. Run it as the user whose home it is,
and `partner-sync verify` afterwards. Not here: secrets, which are in no backup, and making one
(backup.py).
"""

import argparse
import shutil
import sys
from pathlib import Path

OPEN_TO_ANALYSTS = ("published", "exports", "reports")
UNFINISHED = ".unfinished"


def main() -> int:
    """Restore one backup; return 0, or 1 with words."""
    parser = argparse.ArgumentParser(description="Make a home of a backup.")
    parser.add_argument("backup", type=Path)
    parser.add_argument("home", type=Path)
    asked = parser.parse_args()
    if fault := unfit(asked.backup, asked.home):
        sys.stderr.write(f"{fault} Nothing was restored.\n")
        return 1
    try:
        shutil.copytree(asked.backup, asked.home, symlinks=True, dirs_exist_ok=True)
        asked.home.chmod(0o755)
        for folder in OPEN_TO_ANALYSTS:
            if (asked.home / folder).is_dir():
                (asked.home / folder).chmod(0o755)
    except OSError as error:
        sys.stderr.write(f"{asked.home} is not whole, delete it: {error}\n")
        return 1
    sys.stdout.write(f"restored into {asked.home}; now run partner-sync verify, then sync\n")
    return 0


def unfit(backup: Path, home: Path) -> str:
    """Say what speaks against it; nothing where all is well."""
    if not (backup / "state" / "state.sqlite").is_file() or backup.suffix == UNFINISHED:
        return f"{backup} is no backup that came to its end."
    if home.is_dir() and any(home.iterdir()):
        return f"{home} is not empty: move it away first."
    return ""


if __name__ == "__main__":
    sys.exit(main())

"""Runs the migrations from the program, without alembic.ini."""

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection

from pipelines.core.errors import ConfigurationError

FOLDER = "pipelines.metadata:migrations"


def alembic_config(connection: Connection | None = None) -> Config:
    """Return Alembic's configuration; the migrations run on this connection."""
    config = Config()
    config.set_main_option("script_location", FOLDER)
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def upgrade_tables(connection: Connection) -> None:
    """Bring the tables up to the newest revision. Raises ConfigurationError for a newer one."""
    try:
        command.upgrade(alembic_config(connection), "head")
    except CommandError as error:
        raise ConfigurationError(
            f"The metadata database cannot be used by this version of partner-sync ({error}). A "
            "newer version has changed it. Nothing was changed.",
            "Install the newer version of partner-sync again.",
        ) from error

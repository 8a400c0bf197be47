"""Here: how tables of the metadata database are made, and brought up to date, with Alembic.

It is imported where there is something to do: it takes a tenth of the start of a command.
"""

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection

from pipelines.core.errors import ConfigurationError
from pipelines.metadata.tables import Base


def create_tables(connection: Connection) -> None:
    """Create the newest tables at once, as Alembic's cookbook has it for a new database."""
    Base.metadata.create_all(connection)
    command.stamp(_config(connection), "head")


def upgrade_tables(connection: Connection) -> None:
    """Bring older tables up to date. Raises ConfigurationError for newer ones."""
    try:
        command.upgrade(_config(connection), "head")
    except CommandError as error:
        raise ConfigurationError(
            "The metadata database was changed by a newer version of partner-sync, so this "
            f"version cannot use it ({error}). Nothing was changed.",
            "Install the newer version of partner-sync again.",
        ) from error


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", "pipelines.metadata:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config

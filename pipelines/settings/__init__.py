"""What a user can set, where it comes from, and where things lie on disk.

Precedence: command line, environment `PARTNER_SYNC_*`, `config/settings.toml` in the home, default.
Connections are those of `config/connections.toml`, else the environment's, called `default`.
Secrets are never held here: a `Secret` knows the name of an environment variable or of a 0600 file
and reads it when it is asked.
"""

from pipelines.settings.connection import Connection, Secret
from pipelines.settings.home import Home
from pipelines.settings.model import Settings, StreamSettings, load
from pipelines.settings.targets import Mail, Webhook
from pipelines.settings.values import LIST_PATH, LOOPBACK, PREFIX, Address, Surface

__all__ = [
    "LIST_PATH",
    "LOOPBACK",
    "PREFIX",
    "Address",
    "Connection",
    "Home",
    "Mail",
    "Secret",
    "Settings",
    "StreamSettings",
    "Surface",
    "Webhook",
    "load",
]

"""Here: the machines that share a home have the same configuration.

Each reads its own files. What they agreed on is the newest decision `configuration`, which has a
digest for each setting, for each connection, and for the mapping. Not here: what the files say
(config).
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from pipelines.config import values
from pipelines.config.settings import Settings
from pipelines.core.errors import ConfigurationError
from pipelines.metadata.decisions import add_decision, decisions_of
from pipelines.metadata.tables import Decision
from pipelines.versions.stores import Stores

KIND: Final = "configuration"
# What concerns one machine only: its folder, network, memory and terminal; where it has secrets.
OF_MACHINE: Final = {
    "home",
    "metadata_url",
    "files_endpoint",
    "memory_limit",
    "log_format",
    "use_proxy",
}
OF_MACHINE_IN_CONNECTION: Final = {"secret", "secret_file", "secret_command", "ca_file"}
MOST_NAMES: Final = 8


def require_same_configuration(stores: Stores) -> None:
    """Raise ConfigurationError if this machine has another configuration than was agreed on.

    The first machine decides. A home in a folder has one configuration anyway.
    """
    if stores.settings.files is None:
        return
    own = _decision(stores, "The first machine of this home.")
    with stores.metadata.transaction() as session:
        agreed = decisions_of(session, KIND)
        if not agreed:
            add_decision(session, own)
    if agreed and agreed[-1].details != own.details:
        raise _another_configuration(stores, agreed[-1].details, own.details)


def accept_configuration(stores: Stores, reason: str) -> None:
    """Let the configuration of this machine be that of all. Raises ConfigurationError."""
    if stores.settings.files is None:
        return
    with stores.metadata.transaction() as session:
        add_decision(session, _decision(stores, reason))


def _decision(stores: Stores, reason: str) -> Decision:
    decision = stores.decision(KIND, "configuration", reason)
    decision.details = _digests(stores.settings)
    return decision


def _another_configuration(
    stores: Stores, agreed: Mapping[str, str], own: Mapping[str, str]
) -> ConfigurationError:
    names = [
        name for name in sorted(agreed.keys() | own.keys()) if agreed.get(name) != own.get(name)
    ]
    shown = ", ".join(names[:MOST_NAMES])
    if len(names) > MOST_NAMES:
        shown += f" and {len(names) - MOST_NAMES} more"
    folder = stores.home.settings_file.parent
    return ConfigurationError(
        f"The configuration of this machine is not the one that the machines of this home agreed "
        f"on. It differs in: {shown}. Nothing was read or changed.",
        f"Copy the files from {folder} of another machine. If you changed it on purpose, run "
        '`partner-sync configuration accept --reason "..."` here, then copy them to the others.',
    )


def _digests(settings: Settings) -> dict[str, str]:
    """Return a digest for each part of the configuration that is not the default.

    So a release with a new setting has the digests of the one before.
    """
    given = settings.model_dump(mode="json", exclude_defaults=True, exclude=OF_MACHINE)
    parts: dict[str, Any] = dict(given)
    for name, connection in settings.connections().items():
        parts[f"connection {name}"] = connection.model_dump(
            mode="json", exclude_defaults=True, exclude=OF_MACHINE_IN_CONNECTION
        )
    parts["mapping.toml"] = values.read_toml(settings.home.mapping_file)
    return {name: _digest(part) for name, part in parts.items()}


def _digest(part: Any) -> str:
    # Dates and times of TOML have no JSON.
    text = json.dumps(part, sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()[:16]

"""Rehearsals (`PARTNER_SYNC_NOW`): with a service of this machine, and no other.

Here: who may be asked under another date. Not here: the clock whose dates are shifted (clock).
"""

from collections.abc import Iterable

from pipelines.errors import ConfigurationError
from pipelines.settings.connection import Connection
from pipelines.settings.values import PREFIX


def refuse_elsewhere(connections: Iterable[Connection]) -> None:
    """Raise ConfigurationError where a service, or its identity provider, is on another machine."""
    away = [each.name for each in connections if not each.on_this_machine]
    if away:
        raise ConfigurationError(
            f"{PREFIX}NOW is set, and the service of {', '.join(away)} is not on this machine. It "
            "is for rehearsals with a service here (partner-sync sandbox): today's answer under "
            f"another date would falsify your history. Nothing was done: unset {PREFIX}NOW"
        )

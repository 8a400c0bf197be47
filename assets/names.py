"""Names of all that Dagster has of one home: assets, jobs and the like, partitions.

In a deployment of one home, they are as they are written here. In one of many, each begins with the
name of the home. A partition of `raw/<stream>` is one connection on one UTC day.

Connections come from connections.toml only. The sensor `connections` makes new ones known here.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

import dagster as dg

from pipelines.config.connections import Connection
from pipelines.config.settings import Settings

# What Dagster allows in names.
NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True)
class Names:
    """Names of one home; `home` is empty in a deployment of one home."""

    home: str = ""

    @classmethod
    def of_folder(cls, folder: str) -> "Names":
        """Return the names of a home of many, by the name of its folder."""
        return cls(NOT_IN_NAMES.sub("_", folder))

    def of(self, name: str) -> str:
        """Return the name of a job, step, schedule, sensor, resource, pool or set of partitions."""
        return "__".join(filter(None, [self.home, name]))

    def group(self, layer: str) -> str:
        """Return the group of the assets of a layer: of many homes, each is one group."""
        return self.home or layer

    def key(self, layer: str, name: str) -> dg.AssetKey:
        """Return the key of an asset of a layer."""
        return dg.AssetKey([*filter(None, [self.home]), layer, name])

    def raw(self, stream: str) -> dg.AssetKey:
        """Return the key of a stream's raw asset."""
        return self.key("raw", stream)

    def is_raw(self, key: dg.AssetKey) -> bool:
        """Return whether a key is that of a raw asset of this home."""
        return key == self.raw(key.path[-1])

    def table(self, stream: str) -> dg.AssetKey:
        """Return the key of a stream's table in the warehouse."""
        return self.key("warehouse", stream)

    def reconciliation(self, table: str) -> dg.AssetKey:
        """Return the key of a table of reconciliation."""
        return self.key("reconciliation", table)

    @property
    def service(self) -> dg.AssetKey:
        """The key of the service that is read."""
        return dg.AssetKey([*filter(None, [self.home]), "service"])

    @property
    def published(self) -> dg.AssetKey:
        """The key of the published version."""
        return self.key("published", "warehouse")

    @property
    def report(self) -> dg.AssetKey:
        """The key of the finance report."""
        return self.key("reports", "finance")

    @property
    def exports(self) -> dg.AssetKey:
        """The key of exported tables."""
        return self.key("exports", "tables")

    @property
    def connections(self) -> str:
        """The name of the dynamic partitions."""
        return self.of("connections")

    @property
    def resource(self) -> str:
        """The name of the resource, and of the pool that bounds how many runs it has at once."""
        return self.of("home")


def connection_days(names: Names, settings: Settings) -> dg.MultiPartitionsDefinition:
    """Return the partitions: connections that are known to Dagster, days up to today."""
    days = dg.DailyPartitionsDefinition(
        start_date=settings.start_date.isoformat(),
        timezone="UTC",
        # Dagster's last partition is the last day that is over. Only the day that has begun can be
        # read.
        end_offset=1,
    )
    connections = dg.DynamicPartitionsDefinition(name=names.connections)
    return dg.MultiPartitionsDefinition({"connection": connections, "day": days})


def partition_key(connection: str, day: date) -> dg.MultiPartitionKey:
    """Return the key of one connection and day: `connection|day`."""
    return dg.MultiPartitionKey({"connection": connection, "day": day.isoformat()})


def register_connections(
    instance: dg.DagsterInstance, names: Names, settings: Settings
) -> dict[str, Connection]:
    """Make the connections known as partitions; return them. Raises ConfigurationError."""
    configured = settings.connections()
    instance.add_dynamic_partitions(names.connections, list(configured))
    return configured

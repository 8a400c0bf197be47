"""The command: ``python -m sandbox``.

Here: options of the command line turned into the value, exit codes (0 ended by a signal, 1 the
port is taken, 2 usage). Not here: what the options do.
"""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from sandbox import changes
from sandbox.changes import ORDERS, UnchangeableError
from sandbox.clients import ClientsFileError, Credentials, demo, read_clients
from sandbox.data.calendar import EPOCH, OutsideDataError, days_since_epoch
from sandbox.data.names import FieldNames
from sandbox.data.sizes import Sizes
from sandbox.faults import catalogue
from sandbox.faults.catalogue import UnknownFaultError
from sandbox.merchant.organizations import UnknownOrganizationError
from sandbox.merchant.tables import StoreError
from sandbox.options import ACTOR_RATE, AUDIENCE, TOKEN_SECONDS, Delay, Limits, Options, Trials
from sandbox.paging import UnknownBoundError, read_most
from sandbox.server import PortInUseError, Server, base_url, bind
from sandbox.service import create_app
from sandbox.tls import certificates

REFUSED = (
    OutsideDataError,
    ClientsFileError,
    StoreError,
    UnknownOrganizationError,
    UnknownFaultError,
    UnchangeableError,
    UnknownBoundError,
)
command = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def moment(text: str) -> datetime:
    """Read a point in time.

    Raises:
        BadParameter: it is neither a date nor an RFC 3339 time with its offset.
    """
    try:
        read = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text} is neither a date nor an RFC 3339 time") from error
    if read.tzinfo is None and len(text) > len("2026-11-01"):
        raise typer.BadParameter(f"{text} has no UTC offset")
    return read if read.tzinfo else read.replace(tzinfo=UTC)


@contextmanager
def credentials(file: Path | None) -> Iterator[tuple[Credentials, str]]:
    """Give the credentials, and for the ready line where they lie."""
    if file:
        yield read_clients(file), f"secrets in {file}"
        return
    made = demo()
    try:
        yield made.credentials, f"API key in {made.key_at}, secret in {made.secret_at}"
    finally:
        made.close()


def run(port: int, options: Options, clients_file: Path | None, *, tls: bool) -> None:
    """Serve until a signal comes."""
    secure = certificates() if tls else nullcontext()
    with bind(port) as bound, credentials(clients_file) as (known, place), secure as made:
        clients = known.clients
        address = base_url(bound, "https" if made else "http")
        complete = replace(options, clients=clients, keys=known.keys, base_url=address)
        noun = "client" if len(clients) == 1 else "clients"
        names = ", ".join(client.id for client in clients) or "none"
        authority = f"authority in {made.authority}, " if made else ""
        details = f"{noun} {names}, audience {options.audience}, {authority}{place}"
        ready = f"sandbox ready: {address} ({details})"
        Server(create_app(complete), ready, made.context if made else None).run(sockets=[bound])


@command.command()
def serve(  # noqa: PLR0913 - a verb's parameters are its options
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: a free one.")] = 8010,
    seed: Annotated[int, typer.Option(help="Seed of the data.")] = 7,
    partners: Annotated[int, typer.Option(min=0, help="Partners on the first day.")] = 250,
    usage: Annotated[int, typer.Option(min=0, help="Usage rows on the first day.")] = 20_000,
    billing: Annotated[int, typer.Option(min=0, help="Bills on the first day.")] = 2_000,
    awkward: Annotated[
        bool, typer.Option("--awkward", help="Serve extreme amounts, decimals and texts.")
    ] = False,
    field_names: Annotated[
        FieldNames, typer.Option(help="Names and shape of usage and billing records.")
    ] = "usual",
    page_limit: Annotated[
        list[str],
        typer.Option(metavar="LIST=RECORDS", help="Largest page of a list; repeatable."),
    ] = [],  # noqa: B006 - never changed
    rate: Annotated[
        int, typer.Option(min=0, help="Requests per window and actor; 0: no limit, no headers.")
    ] = ACTOR_RATE,
    window: Annotated[float, typer.Option(min=0.001, help="Seconds per window.")] = 1.0,
    latency_ms: Annotated[float, typer.Option(min=0, help="Latency of the round trip.")] = 0.0,
    jitter_ms: Annotated[float, typer.Option(min=0, help="Maximum jitter each way.")] = 0.0,
    token_ttl: Annotated[int, typer.Option(min=1, help="Seconds a token lives.")] = TOKEN_SECONDS,
    limit_idp: Annotated[bool, typer.Option(help="Limit the token route per IP.")] = False,
    now: Annotated[
        str, typer.Option(help="Date or RFC 3339 time of the data.")
    ] = EPOCH.date().isoformat(),
    clients: Annotated[Path | None, typer.Option(help="TOML file with mode 0600.")] = None,
    audience: Annotated[str, typer.Option(help="API identifier.")] = AUDIENCE,
    store: Annotated[Path | None, typer.Option(help="SQLite file. Default: in memory.")] = None,
    tls: Annotated[bool, typer.Option("--tls", help="Serve HTTPS.")] = False,
    fault: Annotated[
        list[str], typer.Option(metavar="NAME[:PATH[:EVERY]]", help="Fault; repeatable.")
    ] = [],  # noqa: B006 - never changed
    change: Annotated[
        list[str],
        typer.Option(
            metavar="[LIST:]KIND=RATE[@WHERE]",
            help="Changes per page of a list, up to 20,000 records; repeatable.",
        ),
    ] = [],  # noqa: B006 - never changed
    order: Annotated[str, typer.Option(help="stable, newest-first or shuffled.")] = ORDERS[0],
    plant: Annotated[bool, typer.Option("--plant", help="Plant errors to reconcile.")] = False,
    control: Annotated[bool, typer.Option(help="Serve /__sandbox__/ routes.")] = True,
) -> None:
    """Serve both surfaces of the interface on 127.0.0.1 until it is stopped."""
    if not all(map(math.isfinite, (window, latency_ms, jitter_ms))):
        raise typer.BadParameter("window, latency and jitter must be finite numbers")
    if (usage or billing) and not partners:
        raise typer.BadParameter("usage and billing need at least one partner")
    try:
        options = Options(
            clients=(),
            base_url="",
            seed=seed,
            sizes=Sizes(partners, usage, billing, days_since_epoch(moment(now))),
            awkward=awkward,
            field_names=field_names,
            most=read_most(page_limit, changes.LISTS),
            limits=Limits(rate, window, limit_idp),
            delay=Delay(latency_ms, jitter_ms),
            token_seconds=token_ttl,
            audience=audience,
            store=store,
            trials=Trials(
                tuple(map(catalogue.read, fault)), changes.read(change, order), plant, control
            ),
        )
        run(port, options, clients, tls=tls)
    except REFUSED as error:
        raise typer.BadParameter(str(error)) from error
    except PortInUseError as error:
        sys.stderr.write(f"{error}\n")
        raise typer.Exit(1) from error


if __name__ == "__main__":
    command(prog_name="sandbox")

"""The service: everything assembled into one ASGI application.

Here: which part wraps which. Not here: the parts, and serving them on a socket (server).
"""

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import FastAPI
from starlette.types import ASGIApp

from sandbox.admission import Admission
from sandbox.caller import Callers
from sandbox.clock import SYSTEM, Clock
from sandbox.description import describe
from sandbox.disturbance import Around, Inside
from sandbox.examples import Examples, MerchantExamples
from sandbox.latency import Latency
from sandbox.merchant.beginnings import begin
from sandbox.merchant.book import Book, books
from sandbox.merchant.organizations import Organizations
from sandbox.merchant.store import Store
from sandbox.merchant.tables import opened
from sandbox.merchant.written import Writings
from sandbox.options import Options
from sandbox.problem import Problems
from sandbox.provider import Provider
from sandbox.routes.control import control_routes
from sandbox.routes.desk import Desk
from sandbox.routes.identity import identity_routes
from sandbox.routes.merchant import merchant_routes
from sandbox.routes.operational import operational_routes
from sandbox.routes.partner import partner_routes
from sandbox.routes.standing import standing_routes
from sandbox.statistics import Statistics
from sandbox.trial import Trial


@dataclass(frozen=True)
class Parts:
    """What the layers and routes of one service share."""

    options: Options
    clock: Clock
    provider: Provider
    statistics: Statistics
    organizations: Organizations
    store: Store
    books: Callable[[str], Book]
    trial: Trial


def parts(options: Options, clock: Clock = SYSTEM) -> Parts:
    """Make the parts.

    Raises:
        StoreError: the store's file cannot be used.
        UnknownOrganizationError: a key names an organization that is not there.
    """
    organizations = Organizations(options.seed, options.sizes)
    store = Store(opened(options.store, options.seed), organizations.status)
    organizations.add_keys(options.keys, store)
    library = books(options.seed, organizations)
    known = store.keys()
    begin(store.engine, [library(key.organization) for key in known])
    statistics = Statistics(options.limits.window)
    provider = Provider(options, clock)
    trial = Trial(options, provider.verify)
    return Parts(options, clock, provider, statistics, organizations, store, library, trial)


def routes(made: Parts) -> FastAPI:
    """Make the application inside all layers: routes, and failures as problems."""
    options = made.options
    api = FastAPI(
        openapi_url=None,  # served by our own route under /docs/
        redirect_slashes=False,  # another path is another resource, and a 404
        generate_unique_id_function=lambda route: route.name,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    api.include_router(identity_routes(options, made.provider))
    api.include_router(partner_routes(options, made.trial.dataset))
    api.include_router(merchant_routes(Desk(made.store, made.books, made.clock)))
    api.include_router(operational_routes(lambda: describe(api, options, _examples(made))))
    if options.trials.control:
        api.include_router(control_routes(made.trial, made.statistics))
        api.include_router(standing_routes(made.store))
    Problems(options.base_url).install(api)
    return api


def _examples(made: Parts) -> Examples:
    written = Writings(made.store.engine)
    known = made.store.keys()
    owners = [key.organization for key in known]
    merchant = MerchantExamples(made.books(owners[0]), written) if owners else None
    return Examples(made.trial.dataset, merchant)


def layered(api: ASGIApp, made: Parts) -> ASGIApp:
    """Wrap an application: the wire outermost, then admission, faults, then the routes."""
    options, trial = made.options, made.trial
    problems = Problems(options.base_url)
    callers = Callers(trial.tokens.verify, made.store.matching)
    inside = Inside(api, trial.faults, problems, made.clock)
    admission: ASGIApp = Admission(inside, options, callers.identify, made.statistics, made.clock)
    if options.delay.latency_ms or options.delay.jitter_ms:
        admission = Latency(admission, options.delay, options.seed, made.clock)
    return Around(admission, trial.faults, trial.tokens, problems, made.clock)


def create_app(options: Options, clock: Clock = SYSTEM) -> ASGIApp:
    """Make the whole service as one ASGI application; all its times come from the clock.

    Faults of the wire need a connection, so they work only under the server (server).

    Raises:
        StoreError: the store's file cannot be used.
        UnknownOrganizationError: a key names an organization that is not there.
    """
    made = parts(options, clock)
    return layered(routes(made), made)

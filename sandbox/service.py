"""The service: everything assembled into one ASGI application.

Here: which part wraps which. Not here: the parts, and serving them on a socket (server).
"""

from fastapi import FastAPI
from starlette.types import ASGIApp

from sandbox.admission import Admission
from sandbox.data.dataset import dataset
from sandbox.description import describe
from sandbox.latency import Latency
from sandbox.options import Options
from sandbox.problem import Problems
from sandbox.provider import Provider
from sandbox.routes.identity import identity_routes
from sandbox.routes.operational import operational_routes
from sandbox.routes.partner import partner_routes
from sandbox.statistics import Statistics


def routes(options: Options, provider: Provider, statistics: Statistics) -> FastAPI:
    """Make the application inside all layers: routes, and failures as problems."""
    api = FastAPI(
        openapi_url=None,  # served by our own route under /docs/
        redirect_slashes=False,  # another path is another resource, and a 404
        generate_unique_id_function=lambda route: route.name,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    api.include_router(identity_routes(options, provider))
    api.include_router(partner_routes(options, dataset(options.seed, options.sizes)))
    api.include_router(operational_routes(statistics, lambda: describe(api, options)))
    Problems(options.base_url).install(api)
    return api


def layered(api: ASGIApp, options: Options, provider: Provider, statistics: Statistics) -> ASGIApp:
    """Wrap an application: the wire outermost, then admission, then the routes."""
    admission = Admission(api, options, provider.verify, statistics)
    if options.delay.latency_ms or options.delay.jitter_ms:
        return Latency(admission, options.delay, options.seed)
    return admission


def app(options: Options) -> ASGIApp:
    """Make the whole service as one ASGI application."""
    provider = Provider(options)
    statistics = Statistics(options.limits.window)
    return layered(routes(options, provider, statistics), options, provider, statistics)

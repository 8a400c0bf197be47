"""Connections to the service: certificates, proxies, and no log of what may echo a credential."""

import logging
import ssl
from collections.abc import Callable
from urllib.request import getproxies, proxy_bypass

import httpx

from pipelines.config.connections import Connection
from pipelines.core.errors import ConfigurationError

CONNECT_SECONDS = 10.0  # for the rest of a request, the transport's deadline counts


def open_http(
    connection: Connection,
    auth: httpx.Auth,
    transport: Callable[[str | None], httpx.AsyncBaseTransport],
    *,
    use_proxy: bool,
) -> httpx.AsyncClient:
    """Return httpx's client of a connection; `transport` makes one for a proxy, None for none.

    Redirects are never followed. The environment counts for proxies alone, and only if asked.
    """
    logging.getLogger("httpcore").setLevel(logging.WARNING)  # else it logs headers of answers
    urls = [httpx.URL(url) for url in (connection.base_url, connection.auth_url) if url]
    proxies = {url: proxy for url in urls if use_proxy and (proxy := _proxy(url))}
    return httpx.AsyncClient(
        base_url=connection.base_url,
        auth=auth,
        headers={"Accept-Encoding": "gzip"},
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        transport=transport(None),
        mounts={
            f"{url.scheme}://{url.netloc.decode()}": transport(proxy)
            for url, proxy in proxies.items()
        },
        trust_env=False,
    )


def open_network(connection: Connection, proxy: str | None) -> httpx.AsyncBaseTransport:
    """Return a network. Raises ConfigurationError for a wrong ca_file or proxy."""
    trusted = _trusted(connection)
    try:
        return httpx.AsyncHTTPTransport(verify=trusted, trust_env=False, proxy=proxy)
    except (ValueError, ImportError, httpx.InvalidURL):
        raise ConfigurationError(
            "The proxy that the environment names cannot be used. Nothing was requested.",
            "Correct http_proxy or https_proxy, or set use_proxy = false in settings.toml.",
        ) from None


def _proxy(url: httpx.URL) -> str | None:
    """Return the proxy that the environment names for an address."""
    proxy = None if proxy_bypass(url.host) else getproxies().get(url.scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _trusted(connection: Connection) -> ssl.SSLContext:
    try:
        if connection.ca_file is None:
            return httpx.create_ssl_context(trust_env=False)
        return ssl.create_default_context(cafile=connection.ca_file)
    except OSError as error:
        raise ConfigurationError(
            f"Cannot read ca_file {connection.ca_file} of connection `{connection.name}`: "
            f"{error.strerror or error}. Nothing was requested.",
            "Correct ca_file in connections.toml.",
        ) from None

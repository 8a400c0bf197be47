"""Where a signature may go: to the connection's own service and nowhere else."""

import httpx


def same_origin(url: httpx.URL, service: httpx.URL) -> bool:
    """Tell whether a request goes to the service itself: scheme, host and port."""
    return (url.scheme, url.host, _port(url)) == (service.scheme, service.host, _port(service))


def _port(url: httpx.URL) -> int:
    return url.port or {"http": 80, "https": 443}.get(url.scheme, 0)

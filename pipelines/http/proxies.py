"""The proxy variables of the environment: which proxy an address is reached through, if any.

httpx reads them too, but fails as a whole where NO_PROXY has an IPv6 network or a bracket.
"""

import ipaddress
import os
import re

import httpx

from pipelines.core.errors import ConfigurationError

PORTS = {"http": 80, "https": 443}
KINDS = {"http", "https", "socks5", "socks5h"}


def proxy_for(address: str) -> httpx.Proxy | None:
    """Return the proxy of an address by http_proxy, https_proxy, all_proxy and no_proxy.

    Raises ConfigurationError, which names the variable and not its value: it may have a password.
    """
    url = httpx.URL(address)
    for name in (f"{url.scheme}_proxy", "all_proxy"):
        variable, value = _variable(name)
        if value and _is_excepted(url):
            return None
        if value:
            return _proxy(variable, value)
    return None


def _variable(name: str) -> tuple[str, str]:
    """Return name and value of a variable; the spelling in small letters counts first."""
    for spelling in (name, name.upper()):
        value = os.environ.get(spelling, "").strip().strip("\"'")
        if value:
            return spelling, value
    return name, ""


def _proxy(variable: str, value: str) -> httpx.Proxy:
    text = value if "://" in value else f"http://{value}"
    try:
        proxy = httpx.Proxy(text)
        is_usable = proxy.url.scheme in KINDS and bool(proxy.url.host)
    except (ValueError, httpx.InvalidURL, UnicodeError):
        is_usable = False
    if not is_usable:
        raise ConfigurationError(
            f"The proxy of the environment variable {variable} cannot be used. Nothing was "
            "requested.",
            f"Set {variable} to an address such as http://proxy.example:3128, or set "
            "use_proxy = false in settings.toml.",
        )
    return proxy


def _is_excepted(url: httpx.URL) -> bool:
    """Return whether no_proxy names the host of an address."""
    _name, value = _variable("no_proxy")
    port = url.port or PORTS.get(url.scheme)
    entries = re.split(r"[,\s]+", value.lower())
    return any(_names(entry, url.host.lower(), port) for entry in entries if entry)


def _names(entry: str, host: str, port: int | None) -> bool:
    """Return whether an entry of no_proxy is about a host.

    It is `*`, a name (with its subdomains), an address or a network, IPv6 with or without
    brackets; a port may follow a name, an IPv4 address or a bracket.
    """
    if entry == "*":
        return True
    name = entry
    # A colon that is in no bracket, and is not the only one, is of an IPv6 address.
    with_port = re.fullmatch(r"(\[[^\]]*\](?:/\d+)?|[^:]*)(?::(\d+))?", entry)
    if with_port:
        name, its_port = with_port.groups()
        if its_port and int(its_port) != port:
            return False
    name = name.replace("[", "").replace("]", "")
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(name, strict=False)
    except ValueError:  # it is no address
        name = name.removeprefix("*").removeprefix(".")
        return bool(name) and (host == name or host.endswith(f".{name}"))

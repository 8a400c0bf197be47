"""The proxy variables as Docker, VPN clients and systemd set them."""

import pytest

from pipelines.core.errors import ConfigurationError
from pipelines.http.proxies import proxy_for

NAMES = [f"{name}_proxy" for name in ("http", "https", "all", "no")]
V4, V6, NAME = (
    "http://127.0.0.1:8000",
    "http://[fd07:b51a:cc66:f0::7]:8000",
    "https://api.corp.test",
)
# no_proxy, an address, and whether no proxy is used for it.
EXCEPTIONS = [
    ("localhost,127.0.0.1", V4, True),
    ("localhost,127.0.0.1,::1,fd07:b51a:cc66:f0::/64", V4, True),
    ("localhost,127.0.0.1,[::1]", V4, True),
    ("localhost, 127.0.0.1 , *.internal", V4, True),
    ("127.0.0.0/8", V4, True),
    ("127.0.0.1:8000", V4, True),
    ("127.0.0.1:8001", V4, False),
    ("::1,fd07:b51a:cc66:f0::/64", V6, True),
    ("[fd07:b51a:cc66:f0::7]", V6, True),
    ("[fd07:b51a:cc66:f0::7]:8000", V6, True),
    ("[fd07:b51a:cc66:f0::7]:9", V6, False),
    ("FD07:B51A:CC66:F0:0:0:0:7", V6, True),
    ("[fd07::]/16", V6, True),
    ("fd08::/16", V6, False),
    ("corp.test", NAME, True),
    (".corp.test", NAME, True),
    ("*.CORP.test", NAME, True),
    ("api.corp.test:443", NAME, True),
    ("orp.test", NAME, False),
    ("*", NAME, True),
    (",,[,::/999,%,:::", NAME, False),
    ("", NAME, False),
]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(("exceptions", "address", "is_excepted"), EXCEPTIONS)
def test_no_proxy(
    *, exceptions: str, address: str, is_excepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", exceptions)
    assert (proxy_for(address) is None) == is_excepted


USED = ["http://127.0.0.1:9", "127.0.0.1:9", " http://127.0.0.1:9\r\n", '"http://127.0.0.1:9"']


@pytest.mark.parametrize("value", USED)
@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_a_proxy_is_used(value: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    proxy = proxy_for(V4)
    assert proxy is not None
    assert str(proxy.url) == "http://127.0.0.1:9"


@pytest.mark.parametrize("value", ["ftp://h:1", "http://", "http://[::1", "http://u:hidden@h:port"])
def test_a_wrong_proxy_is_named_and_not_shown(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", value)
    with pytest.raises(ConfigurationError, match="environment variable HTTP_PROXY cannot") as got:
        proxy_for(V4)
    assert "hidden" not in str(got.value)
    assert proxy_for(NAME) is None

"""Where a secret is read from, and where it is refused."""

from pathlib import Path

import pytest

from pipelines.errors import ConfigurationError
from pipelines.settings import Secret

SECRET = "canary-7f3a9c"
VARIABLE = "PARTNER_SYNC_CLIENT_SECRET"


def file(folder: Path, mode: int, content: bytes = SECRET.encode() + b"\n") -> Path:
    path = folder / "secret"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_the_secret_is_read_from_a_file_of_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert Secret(VARIABLE, file(tmp_path, 0o600)).read() == SECRET


def test_the_variable_comes_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)
    assert Secret(VARIABLE, file(tmp_path, 0o600, b"other")).read() == SECRET


@pytest.mark.parametrize(
    ("mode", "content", "words"),
    [
        (0o644, SECRET.encode(), "can be read by others: chmod 600"),
        (0o640, SECRET.encode(), "can be read by others: chmod 600"),
        (0o604, SECRET.encode(), "can be read by others: chmod 600"),
        (0o600, b" \n", "is empty"),
        (0o600, b"\xff\xfe" + SECRET.encode(), "is not text in UTF-8"),
    ],
)
def test_a_secret_file_that_will_not_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, content: bytes, words: str
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(ConfigurationError) as caught:
        Secret(VARIABLE, file(tmp_path, mode, content)).read()
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_secret_that_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    with pytest.raises(ConfigurationError, match=f"{VARIABLE} is not set"):
        Secret(VARIABLE).read()
    with pytest.raises(ConfigurationError, match=r"secret file .*: No such file or directory"):
        Secret(VARIABLE, tmp_path / "gone").read()

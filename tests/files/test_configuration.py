"""Machines that share a home have one configuration, and change it together."""

from pathlib import Path

import pytest

from pipelines.app.session import open_session
from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.core.errors import ConfigurationError
from pipelines.files.bucket import Bucket
from pipelines.metadata.decisions import decisions_of
from tests.cli.conftest import Cli
from tests.versions.homes import SERVICE

pytest_plugins = ["tests.bucket", "tests.postgresql"]
Machines = tuple[Home, Home]


@pytest.fixture
def machines(tmp_path: Path, bucket: Bucket, server_url: str) -> Machines:
    """Give the folders of two machines that share a home."""
    one, two = Home(tmp_path / "one").prepare(), Home(tmp_path / "two").prepare()
    for home, local in ((one, 'memory_limit = "1GB"'), (two, 'log_format = "json"')):
        add_connection(home.connections_file, "acme", SERVICE)
        home.settings_file.write_text(
            f'metadata_url = "{server_url}"\n'
            f'files = "{bucket.url}"\nfiles_endpoint = "{bucket.endpoint}"\n{local}\n'
        )
    return one, two


def refused(home: Home) -> str:
    with pytest.raises(ConfigurationError) as caught, open_session(home):
        pass
    assert 'configuration accept --reason "..."' in caught.value.remedy
    assert f"Copy the files from {home.settings_file.parent}" in caught.value.remedy
    return str(caught.value)


def append(file: Path, text: str) -> None:
    with file.open("a") as opened:
        opened.write(text)


def test_another_configuration_is_refused_until_a_person_accepts_it(machines: Machines) -> None:
    one, two = machines
    for home in (one, two):
        with open_session(home):
            pass
    append(one.settings_file, 'keep_versions = 5\n# a comment\n[streams.usage]\nkey = "id"\n')
    append(one.mapping_file, '[usage]\nid = "id"\n')
    add_connection(one.connections_file, "shop", {**SERVICE, "secret": "SHOP_KEY"})
    assert "differs in: connection shop, keep_versions, mapping.toml, streams." in refused(one)
    with open_session(two):
        pass
    answer = Cli(one)("configuration", "accept", "--reason", "a new shop")
    assert "The other machines are refused until they have the same files." in answer.output
    assert "differs in: connection shop" in refused(two)
    # Where a secret is, is up to the machine.
    text = one.connections_file.read_text().replace("SHOP_KEY", "OTHER_KEY")
    two.connections_file.write_text(text)
    two.mapping_file.write_text(one.mapping_file.read_text())
    append(two.settings_file, 'keep_versions = 5\n[streams.usage]\nkey = "id"\n')
    with open_session(two) as session, session.metadata.transaction() as db:
        reasons = [decision.reason for decision in decisions_of(db, "configuration")]
    assert reasons == ["The first machine of this home.", "a new shop"]


def test_a_home_in_a_folder_is_never_refused(tmp_path: Path) -> None:
    home = Home(tmp_path).prepare()
    for name in ("acme", "shop"):
        add_connection(home.connections_file, name, SERVICE)
        with open_session(home) as session, session.metadata.transaction() as db:
            assert not decisions_of(db, "configuration")
    answer = Cli(home)("configuration", "accept", "--reason", "why")
    assert "This home has one configuration" in answer.output

"""A bucket that is stopped while a sync reads: what is said, and how the next sync goes on."""

import pytest

from pipelines.app.nightly import sync
from pipelines.app.results import LoggedProgress, ReadRequest
from pipelines.core.errors import ExitCode, StorageFailed
from pipelines.files import open_store
from pipelines.files.bucket import Bucket
from pipelines.metadata.tables import Scan
from tests.homes import KEYS, make_home, opened, records, rows
from tests.s3_server import SETTINGS, started_bucket
from tests.sandbox.running import Running

pytest_plugins = ["tests.postgresql"]


def test_a_bucket_that_is_stopped_while_lists_are_read_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    sandbox: Running,
    server_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        open_store, "open_bucket", lambda url, endpoint: Bucket(url, endpoint, retry_seconds=0.5)
    )
    home = make_home(tmp_path_factory.mktemp("stopped") / "home", sandbox)
    with started_bucket() as server:
        variables = {
            **SETTINGS,
            "PARTNER_SYNC_METADATA_URL": server_url,
            "PARTNER_SYNC_FILES": "s3://homes/stopped",
            "PARTNER_SYNC_FILES_ENDPOINT": server.endpoint,
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

        def stop(*_progress: object) -> None:
            if server.is_running:
                server.stop()

        with (
            opened(home) as session,
            pytest.raises(StorageFailed, match=r"s3://homes/stopped cannot be used .* refused"),
        ):
            sync(session, [ReadRequest("acme")], stop)
        asked = sandbox.statistics()["requests"]
        with pytest.raises(StorageFailed, match="cannot be used"), opened(home):
            pass
        server.start()
        with opened(home) as session:
            with session.metadata.transaction() as db:
                assert {scan.status for scan in db.query(Scan)} == {"open"}
            result = sync(session, [ReadRequest("acme")], LoggedProgress())
        assert result.exit_code == ExitCode.DONE
        assert {each.source for each in result.streams} == {"resumed"}
        for stream in KEYS:
            path = f"/v2/{stream}"
            assert sandbox.statistics()["requests"][path] == asked[path]  # not one page more
        for stream in KEYS:
            expected = [(len(records(sandbox, stream)),)]
            assert rows(home, f"SELECT count(*) FROM current.{stream}") == expected

"""The interface description is compared with the one that a person saw last."""

from pathlib import Path

from pipelines.app.checkup import run_checks
from pipelines.app.discover import discover
from pipelines.config.home import Home
from pipelines.metadata.tables import ApiSpec
from tests.homes import make_home, opened, sync_once
from tests.sandbox.running import Running

PATH = "/docs/openapi.json"


def changes(home: Home) -> list[str]:
    with opened(home) as session:
        found = {each.check.code: each.findings for each in run_checks(session)}
    return [each.message for each in found["description_changed"]]


def test_a_change_is_a_finding_until_a_person_has_seen_it(sandbox: Running, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", sandbox)
    with opened(home) as session:
        assert discover(session, "acme", PATH)
        with session.metadata.transaction() as db:
            row = db.get_one(ApiSpec, "acme")
            assert row.parts.pop("GET /v2/usage")
            row.parts = {**row.parts, "GET /v2/old": "1", "GET /v2/billing": "2"}
    sync_once(home, "partners")
    (text,) = changes(home)
    assert "New: GET /v2/usage. Gone: GET /v2/old. Changed: GET /v2/billing." in text
    with opened(home) as session:
        discover(session, "acme", PATH)
        assert changes(home) == []
        with session.metadata.transaction() as db:
            db.get_one(ApiSpec, "acme").path = "/docs/absent.json"
    sync_once(home, "partners")
    (text,) = changes(home)
    assert "It could not be read: The service answered /docs/absent.json with status 404" in text

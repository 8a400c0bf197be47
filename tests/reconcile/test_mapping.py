"""`mapping propose` and `mapping accept`: what they show, write, refuse and keep."""

from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from pipelines.app.nightly import build_with_books
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.finance.mapping import Mapping, read_mapping
from pipelines.finance.proposals import accept, propose
from tests.cli.conftest import Cli
from tests.reconcile.made_up import Lists, usual
from tests.versions.homes import Reading, Stores, home_of, read

OWN = """
time_zone = "Europe/Berlin"
grace_days = 3
[usage]
amount = "unitPrice"
[billing]
organization = "partnerId"
credit_kinds = ["b\\"ez\\u007fahlt\\\\ü\\n"]
[tolerance]
line_percent = 0.5
"""


def publish(stores: Stores, lists: Lists) -> None:
    """Publish lists whose keys are their first fields, if these are texts."""
    for stream, records in lists.items():
        name, value = next(iter(records[0].items()))
        key = name if isinstance(value, str) else None
        read(stores, Reading(records, stream, page_size=100, key=key))
    build_with_books(stores)


def publish_usual(stores: Stores) -> None:
    stores.configure()
    publish(stores, usual())


usual_home = home_of(publish_usual)


def mapped(usual_home: Stores) -> Mapping:
    found = read_mapping(usual_home.home.mapping_file)
    assert found
    return found


def test_accept_writes_the_proposal(usual_home: Stores) -> None:
    file = usual_home.home.mapping_file
    checkout = file.with_name("checkout.toml")
    file.symlink_to(checkout)
    text = accept(usual_home)
    assert file.resolve() == checkout
    assert text == (
        f"Wrote {file}, 37 of 48 roles. Without a field: usage.unit, usage.region, "
        "billing.organization, billing.paid, billing.open, billing.credit_kinds, "
        "billing.line_plan, billing.line_metric, billing.line_unit, billing.line_region, "
        "billing.line_currency."
    )
    assert file.stat().st_mode & 0o777 == 0o600
    assert mapped(usual_home).fields()["billing.line_amount"] == "lines[].amount"
    assert mapped(usual_home).billing.counted_statuses == ("issued", "paid")
    for each in propose(usual_home):
        assert (each["current_mapping"], each["problem"]) == (each["field"], "")
    assert "# identifier of the partner\n# 60 of 60 (100 %) values are in" in file.read_text()
    before = file.stat()
    assert (
        accept(usual_home)
        == f"{file} already has every field that is proposed. It was not changed."
    )
    assert file.stat() == before


@pytest.mark.long
@pytest.mark.parametrize(
    ("spelled", "zone"),
    [
        ("+05:30", "Asia/Kolkata"),  # as it is sent
        ("", "America/New_York"),  # in UTC, in summer and winter
        ("Z", None),  # midnight of UTC
    ],
)
def test_periods_that_begin_at_local_midnight_show_the_time_zone(
    usual_home: Stores, spelled: str, zone: str | None
) -> None:
    lists = usual()
    for bill in lists["billing"]:
        day = datetime.fromisoformat(bill["period"]["start"])
        if not spelled:
            day = day.replace(tzinfo=ZoneInfo("America/New_York")).astimezone(UTC)
        bill["period"]["start"] = f"{day:%Y-%m-%dT%H:%M:%S}{spelled or 'Z'}"
    publish(usual_home, lists)
    found = [row["field"] for row in propose(usual_home) if row["role"] == "time_zone"]
    assert found == ([zone] if zone else [])
    accept(usual_home)
    assert mapped(usual_home).time_zone.key == (zone or "UTC")
    if zone:
        file = usual_home.home.mapping_file
        assert "times of periods are midnight there" in file.read_text()
        file.write_text(file.read_text().replace(f'"{zone}"', '"UTC"'))
        (again,) = [row for row in propose(usual_home) if row["role"] == "time_zone"]
        assert again["problem"].startswith("Periods do not begin at midnight in UTC")
        accept(usual_home, replace=True)
        assert mapped(usual_home).time_zone.key == "UTC"


def test_another_mapping_is_replaced_only_on_demand(usual_home: Stores) -> None:
    file = usual_home.home.mapping_file
    file.write_text(OWN)
    with pytest.raises(ConfigurationError, match=r"usage.amount: unitPrice -> amount; ") as raised:
        accept(usual_home)
    assert "usage.id: not mapped -> usageId; " in str(raised.value)
    assert "billing.counted_statuses: not mapped -> issued, paid" in str(raised.value)
    assert "billing.organization" not in str(raised.value)
    assert file.read_text() == OWN
    accept(usual_home, replace=True)
    found = mapped(usual_home)
    assert (found.time_zone.key, found.grace_days) == ("Europe/Berlin", 3)
    assert found.tolerance.line_percent == Decimal("0.5")
    assert (found.billing.organization, found.usage.amount) == ("partnerId", "amount")
    assert found.billing.credit_kinds == ('b"ez\x7fahlt\\ü\n',)


def test_a_mapping_that_is_wrong(usual_home: Stores) -> None:
    file = usual_home.home.mapping_file
    file.write_text(OWN.replace('"partnerId"', '"partnrId"'))
    problem = "No record of billing has a field partnrId. The nearest is partnerId."
    found = {each["role"]: each for each in propose(usual_home)}["billing.organization"]
    assert (found["current_mapping"], found["problem"]) == ("partnrId", problem)
    with pytest.raises(ConfigurationError, match=f"not changed. billing.organization: {problem}"):
        accept(usual_home, replace=True)
    assert "partnrId" in file.read_text()
    file.write_text("[usage]\nammount = 'a'")
    for do in (propose, accept):
        with pytest.raises(ConfigurationError, match=r"usage\.ammount: no such field"):
            do(usual_home)


def test_nothing_to_accept(stores: Stores) -> None:
    for do in (propose, accept):
        with pytest.raises(PartnerSyncError, match="Nothing is published yet"):
            do(stores)
    publish(stores, {"usage": [{"a": [1]}] * 2})
    with pytest.raises(ConfigurationError, match="No field of usage or billing qualifies"):
        accept(stores)
    assert not stores.home.mapping_file.exists()


@pytest.mark.long
def test_commands(usual_home: Stores) -> None:
    cli = Cli(usual_home.home)
    keys = {"role", "field", "evidence", "current_mapping", "problem"}
    assert all(each.keys() == keys for each in cli.json("mapping", "propose"))
    assert "Wrote" in cli("mapping", "accept").output
    assert "Nothing new. Books 1-2 are published." in cli("mapping", "accept").output
    assert usual_home.rows("SELECT count(*) > 0 FROM temp.matches") == [(True,)]
    usual_home.home.mapping_file.write_text(OWN.replace('"unitPrice"', '"unitprice"'))
    shown = cli("mapping", "propose", code=3).output
    assert "No record of usage has a field unitprice. The nearest is unitPrice." in shown
    assert "mapping accept --replace" in cli("mapping", "accept", code=2).output
    assert "Wrote" in cli("mapping", "accept", "--replace").output

"""The mapping proposed from data: right on the sandbox's, by evidence where names say nothing.

The data have planted errors, so that no share is whole that need not be.
"""

import re
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from pipelines import run
from pipelines.errors import ConfigurationError, NothingPublished
from pipelines.run import Proposed, fields, measures, roles
from pipelines.run.fields import Field, Fields
from pipelines.run.hints import HINTS
from pipelines.run.mapping import STREAMS, paths, rendered, wrong_paths
from pipelines.run.proposing import Finding, Proposal, candidates
from pipelines.settings import Home, Settings, mapping
from pipelines.warehouse import published
from tests.cli.program import ran
from tests.run.conftest import SHIPPED

# What the rows tell without a name: keys by what refers to them, money by what multiplies and adds
# up, currencies by their codes. Which of a bill's two unique fields is its key, nothing tells.
KNOWN = {
    "partners.id": "partnerId",
    "usage.id": "usageId",
    "usage.partner": "partnerId",
    "usage.quantity": "quantity",
    "usage.price": "unitPrice",
    "usage.amount": "amount",
    "usage.currency": "currency",
    "billing.partner": "partnerId",
    "billing.amount": "total",
    "billing.currency": "currency",
    "billing.line_usage": "lines[].usageId",
    "billing.line_quantity": "lines[].quantity",
    "billing.line_price": "lines[].unitPrice",
    "billing.line_amount": "lines[].amount",
}


@pytest.fixture
def home(planted: Path, tmp_path: Path) -> Path:
    """Return a home of its own, without a mapping."""
    made = Path(shutil.copytree(planted, tmp_path / "home", symlinks=True))
    (made / "config" / mapping.FILE).unlink()
    return made


@pytest.fixture(scope="module")
def tables(planted: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with published.opened(Home(planted)) as source:
        yield source.database


def proposed(home: Path) -> Proposed:
    with run.open(Settings(home=home)) as session:
        return run.propose(session)


def accepted(home: Path, *, anew: bool = False) -> run.Accepted:
    with run.open(Settings(home=home)) as session:
        return run.accept_mapping(session, run.propose(session), "ann", anew=anew)


def nameless(of: Fields) -> tuple[Fields, dict[str, str]]:
    """Return fields whose names say nothing, and what each is really called."""
    made, real = list[Field](), dict[str, str]()
    for number, each in enumerate(of.found):
        array = f"{each.path.partition('[]')[0]}[]." if each.inner else ""
        path = f"{'q[].' if array else ''}{of.stream[0]}{number:02}"
        made.append(replace(each, path=path, text=""))
        real[path] = each.path
    return Fields(of.stream, tuple(made), None), real


def test_every_role_of_the_sandbox_is_proposed_as_the_shipped_mapping_has_it(home: Path) -> None:
    accepted(home)
    own = mapping.load(home / "config").mapping
    assert own == mapping.parsed(SHIPPED.read_text(), "sandbox.toml")


def test_each_proposal_says_what_the_rows_say_for_it(planted: Path) -> None:
    said = {each.role: "; ".join(each.evidence) for each in proposed(planted).proposals}
    assert "are in partners.partnerId" in said["usage.partner"]
    assert "quantity x unitPrice = amount" in said["usage.amount"]
    assert "100.00 %) are the sum of the bill's lines[].amount" in said["billing.amount"]
    assert "currencies of ISO 4217" in said["usage.currency"]
    assert "100.00 %) are dates or times" in said["billing.period"]
    assert "in the month of their bill" in said["usage.period"]
    assert "99." in said["usage.partner"]  # planted strangers: never rounded to all


def test_names_that_say_nothing_leave_what_rows_show(tables: duckdb.DuckDBPyConnection) -> None:
    pairs = {name: nameless(fields.read(tables, name)) for name in STREAMS}
    found = roles.proposed(tables, {name: of for name, (of, _) in pairs.items()})
    real = {name: paths for name, (_, paths) in pairs.items()}
    mapped = {
        each.role: real[each.role.partition(".")[0]][each.path] for each in found if each.path
    }
    assert mapped == KNOWN


def test_the_description_s_texts_name_what_names_do_not(
    tables: duckdb.DuckDBPyConnection,
) -> None:
    texts = {"planId": "The plan that was used.", "period.start": "First day of the period."}
    made = {name: nameless(fields.read(tables, name)) for name in STREAMS}
    usage, real = made["usage"]
    told = [replace(each, text=texts.get(real[each.path], "")) for each in usage.found]
    streams = {name: of for name, (of, _) in made.items()}
    found = roles.proposed(tables, streams | {"usage": replace(usage, found=tuple(told))})
    mapped = {each.role: each for each in found if each.path}
    for role, name in (("usage.plan", "planId"), ("usage.period", "period.start")):
        assert real[mapped[role].path or ""] == name
        assert "called so by its description" in mapped[role].evidence


def test_two_fields_that_are_as_good_are_left_to_a_person(
    tables: duckdb.DuckDBPyConnection,
) -> None:
    twins = [
        Field("billing", "billing", column, "VARCHAR", path)
        for column, path in (("billing_id", "a"), ("invoice_number", "b"))
    ]
    finding = Finding(tables)
    finding.best(
        "billing.id",
        candidates("billing.id", twins, lambda each: measures.filled(tables, each)),
        "differ",
    )
    assert finding.roles == {}
    assert "a, b are as good as each other" in finding.said["billing.id"][0]


def test_a_list_that_was_not_read_is_said(tables: duckdb.DuckDBPyConnection) -> None:
    streams = {name: fields.read(tables, name) for name in STREAMS}
    found = roles.proposed(tables, streams | {"billing": Fields("billing", ())})
    lacking = [each for each in found if each.role.startswith("billing.")]
    words = "there is no table current.billing: no list of that name was read"
    assert {(each.path, each.evidence) for each in lacking} == {(None, (words,))}
    assert Proposal("usage.id", "usageId", found[3].evidence) == found[3]


def test_a_mapping_is_written_for_its_owner_alone_and_once(home: Path) -> None:
    first, again = accepted(home), accepted(home)
    assert (first.written, again.written, again.changes) == (True, False, ())
    assert first.file.stat().st_mode & 0o777 == 0o600
    assert first.file.parent.stat().st_mode & 0o777 == 0o700
    assert "accepted by ann" in first.file.read_text()
    assert "usage.partner: not mapped -> partnerId" in first.changes


def test_another_mapping_is_replaced_on_purpose_only(home: Path) -> None:
    file = home / "config" / mapping.FILE
    own = 'time_zone = "Europe/Berlin"\n[usage]\namount = "unitPrice"\n[billing]\nkind = "status"\n'
    own += '[match]\nkeys = ["partner", "month"]\n[tolerance]\nline_percent = "0.5"\n'
    file.write_text(own)
    with pytest.raises(ConfigurationError, match=r"usage\.amount: unitPrice -> amount"):
        accepted(home)
    assert file.read_text() == own
    assert "usage.amount: unitPrice -> amount" in accepted(home, anew=True).changes
    kept = tomllib.loads(file.read_text())
    assert (kept["time_zone"], kept["billing"]["kind"]) == ("Europe/Berlin", "status")
    assert kept["match"]["keys"] == ["partner", "month"]
    assert kept["tolerance"] == {"line_percent": "0.5"}
    assert kept["usage"]["amount"] == "amount"


def test_a_path_that_no_table_has_is_named_with_the_nearest(
    tables: duckdb.DuckDBPyConnection,
) -> None:
    wrong = mapping.parsed('[usage]\npartner = "partnerid"\n[billing]\nid = "billingId"', "m")
    words = r"usage\.partner: no field partnerid in current\.usage; is partnerId meant\?$"
    streams = {name: fields.read(tables, name) for name in STREAMS}
    (said,) = wrong_paths(wrong, streams)
    assert re.search(words, said)
    right = mapping.parsed(SHIPPED.read_text(), "sandbox.toml")
    assert list(wrong_paths(right, streams)) == []
    assert mapping.parsed(rendered(right), "again") == right


def test_the_verb_shows_the_proposal_and_writes_it_on_a_word(home: Path) -> None:
    environment = {"PARTNER_SYNC_HOME": str(home)}
    shown, written = ran(environment, "map"), ran(environment, "map", "--accept")
    assert shown.returncode == 0, shown.stderr
    assert "partner-sync map --accept" in shown.stdout
    assert "billing.kind" in shown.stdout.split("not mapped")[1]
    assert "mapping.toml yet" in shown.stdout
    assert f"written: {home / 'config' / mapping.FILE}" in written.stdout
    file = home / "config" / mapping.FILE
    file.write_text(file.read_text().replace('"planId"', '"planID"'))
    refused = ran(environment, "map")
    assert (refused.returncode, "is planId meant?" in refused.stderr) == (2, True)


def test_nothing_is_proposed_before_something_is_published(tmp_path: Path) -> None:
    with pytest.raises(NothingPublished, match="sync"):
        proposed(tmp_path / "home")


def test_every_role_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reconciliation.md").read_text()
    told = page.split("| table | roles |")[1].split("What speaks for")[0]
    assert [role for role in HINTS if f"`{role.partition('.')[2]}`" not in told] == []
    assert set(paths(mapping.Mapping())) == set(HINTS)
    roles_of = {
        f"{name}.{noun}"
        for name in STREAMS
        for noun in type(getattr(mapping.Mapping(), name)).model_fields
    }
    assert {each for each in roles_of if not each.endswith(".stream")} == set(HINTS)

"""`config/mapping.toml`: what is proposed for the published version, and what is accepted."""

import json
from collections.abc import Iterator
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pipelines.config.values import Table, read_content
from pipelines.core.errors import ConfigurationError
from pipelines.core.files import write_durably
from pipelines.core.text import counted, printable
from pipelines.finance.mapping import Mapping, content_digest, mapping_of, read_mapping
from pipelines.finance.materiality import amount_text, propose_materiality
from pipelines.finance.reconcile.propose import propose_roles
from pipelines.finance.reconcile.roles import FieldColumn, name_of, read_columns, side_of
from pipelines.finance.reconcile.time_zones import TimeZones, find_time_zones
from pipelines.metadata.decisions import add_decision, decisions_of
from pipelines.versions.configuration import accept_configuration
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row

LONGEST_COMMENT: Final = 1_000
REASON: Final = "mapping accept"
MATERIALITY: Final = "materiality."
TIME_ZONE: Final = "time_zone"
# What is proposed and is no role. What a person set of it stays.
TERMS: Final = (MATERIALITY, TIME_ZONE)
WITHOUT_FIELD: Final = ("partners.", "usage.amount_unit", "billing.amount_unit", *TERMS)
PERIODS: Final = ("usage.period", "billing.period")
# Lists of values that may well be empty.
OTHER_VALUES: Final = ("billing.other_statuses", "billing.other_kinds")
HEAD: Final = """\
# Fields that have a role in reconciliation. Written by `partner-sync mapping accept` from version
# {version}. After editing it, run `partner-sync reconcile`. Rules that need a role without a field
# are not evaluated."""


def propose(stores: Stores) -> list[Row]:
    """Return for each role the proposed field and why, and the field it has in mapping.toml.

    `problem` says what is wrong with the latter. Raises PartnerSyncError, ConfigurationError.
    """
    current = read_mapping(stores.home.mapping_file)
    mapping = current or Mapping()
    with stores.warehouse.open() as db:
        columns = read_columns(db)
        proposals = propose_roles(db, mapping.partners)
        found = [{"role": role, "field": proposal.field} for role, proposal in proposals.items()]
        paths = {role: proposals[role].field for role in PERIODS}
        periods = [
            column for column in columns if paths.get(f"{column.stream}.period") == column.path
        ]
        zones = find_time_zones(db, periods, mapping.time_zone.key)
        terms = _time_zone_rows(current, zones)
        amounts = propose_materiality(db, _merged(mapping, [*found, *terms]))
    rows = []
    for role, proposal in proposals.items():
        value = _value(current, role)
        row = {
            "role": role,
            "field": proposal.field,
            "evidence": proposal.evidence,
            "current_mapping": value if value or role in OTHER_VALUES else None,
            "problem": _problem_of_set(mapping, role, value, columns),
        }
        rows.append(row)
    return [*rows, *terms, *_amount_rows(mapping, amounts)]


def _problem_of_set(mapping: Mapping, role: str, value: Any, columns: list[FieldColumn]) -> str:
    """Return what is wrong with the field that a person set for a role; empty: nothing."""
    # The fields of partners are documented, so they are no problem.
    if role not in mapping.fields() or value == _value(Mapping(), role):
        return ""
    side = side_of(role)
    fields = [column.path for column in columns if column.stream == side]
    return _problem(role, value, fields)


def _time_zone_rows(current: Mapping | None, zones: TimeZones) -> list[Row]:
    """Return what is proposed as the time zone; nothing where that of the mapping may be right."""
    if not zones.names:
        return []
    set_before = None
    problem = ""
    if current is not None:
        set_before = current.time_zone.key
        problem = f"Periods do not begin at midnight in {set_before}, so they may be in two months."
    return [
        {
            "role": TIME_ZONE,
            "field": zones.names[0],
            "evidence": zones.evidence,
            "current_mapping": set_before,
            "problem": problem,
        }
    ]


def _amount_rows(mapping: Mapping, amounts: list[Row]) -> Iterator[Row]:
    """Yield what is proposed as materiality of each currency."""
    for row in amounts:
        code = row["currency"]
        current = mapping.material_amounts().get(code)
        yield {
            "role": f"{MATERIALITY}{code}",
            "field": amount_text(row["amount"]),
            "evidence": (
                f"A thousandth of {amount_text(row['median'])}, the median of "
                f"{counted(row['months'], 'complete month')} with bills."
            ),
            "current_mapping": None if current is None else amount_text(current),
            "problem": "",
        }


def accept(stores: Stores, *, replace: bool = False) -> str:
    """Write the proposals to mapping.toml; return what was done, as a sentence.

    Who accepts the mapping is recorded, also if nothing is written: a person may have edited it
    before. With `replace`, what a person set stays where nothing is proposed. Raises
    PartnerSyncError, and ConfigurationError where the file differs, or a field in it exists in no
    record.
    """
    file = stores.home.mapping_file
    rows = propose(stores)
    content = read_content(file)
    current = mapping_of(content, file)
    mapping = _merged(current or Mapping(), rows)
    if mapping == current:
        _record(stores, content)
        return f"{file} already has every field that is proposed. It was not changed."
    if current and not replace:
        raise _another_mapping(file, rows)
    _require_usable(file, rows)
    version = stores.warehouse.require_published().number
    content = _rendered(mapping, version, rows).encode()
    write_durably(file, content)
    accept_configuration(stores, REASON)
    _record(stores, content)
    unknown = []
    roles = [row for row in rows if not row["role"].startswith(TERMS)]
    for row in roles:
        role = row["role"]
        if role not in OTHER_VALUES and _value(mapping, role) in {None, ()}:
            unknown.append(role)
    without = f" Without a field: {', '.join(unknown)}." if unknown else ""
    return f"Wrote {file}, {len(roles) - len(unknown)} of {len(roles)} roles.{without}"


def _record(stores: Stores, content: bytes) -> None:
    """Record who accepts the mapping with this content, unless it is the one accepted last."""
    digest = content_digest(content)
    with stores.metadata.transaction() as session:
        accepted = decisions_of(session, "accept_mapping")
        if not accepted or accepted[-1].subject != digest:
            add_decision(session, stores.decision("accept_mapping", digest, REASON))


def _merged(mapping: Mapping, rows: list[Row]) -> Mapping:
    """Return a mapping with what is proposed; the rest of it stays, also time zone, materiality."""
    tables = mapping.model_dump()
    for row in rows:
        side, _, name = row["role"].partition(".")
        if row["role"].startswith(TERMS):
            if row["current_mapping"] is None:
                place = tables[side] if name else tables
                place[name or side] = row["field"]
        elif row["field"] is not None:
            tables[side][name] = row["field"]
    return Mapping.model_validate(tables)


def _require_usable(file: Path, rows: list[Row]) -> None:
    """Raise ConfigurationError where a field that stays is wrong, or nothing was found."""
    problems = [
        f"{row['role']}: {row['problem']}" for row in rows if row["problem"] and not row["field"]
    ]
    if problems:
        raise ConfigurationError(
            f"{file} was not changed. {' '.join(problems)}", f"Correct these fields in {file}."
        )
    is_found = any(row["field"] for row in rows if not row["role"].startswith(WITHOUT_FIELD))
    if not is_found:
        raise ConfigurationError(
            "No field of usage or billing qualifies. Nothing was written.",
            "Run `partner-sync mapping propose` to see why.",
        )


def _another_mapping(file: Path, rows: list[Row]) -> ConfigurationError:
    changes = []
    for row in rows:
        before = row["current_mapping"]
        proposed = row["field"]
        is_kept = row["role"].startswith(TERMS) and before is not None
        if proposed is not None and proposed != before and not is_kept:
            changes.append(f"{row['role']}: {_shown(before)} -> {_shown(proposed)}")
    return ConfigurationError(
        f"{file} differs from the proposal and was not changed. {'; '.join(changes)}.",
        "Run `partner-sync mapping accept --replace` to use the proposal. Time zone, grace "
        "days, tolerance, accepted fees, materiality, and roles for which nothing is proposed "
        "stay.",
    )


def _value(mapping: Mapping | None, role: str) -> Any:
    if mapping is None:
        return None
    return getattr(getattr(mapping, side_of(role)), name_of(role))


def _problem(role: str, value: Any, fields: list[str]) -> str:
    """Return why a field that a person set cannot be right: no record has it."""
    if not isinstance(value, str) or not fields or value in fields:
        return ""
    problem = f"No record of {side_of(role)} has a field {value}."
    for nearest in get_close_matches(value, fields, n=1):
        problem += f" The nearest is {nearest}."
    return problem


def _shown(value: Any) -> str:
    text = ", ".join(value) if isinstance(value, tuple) else value
    return text or "not mapped"


def _rendered(mapping: Mapping, version: int, rows: list[Row]) -> str:
    """Return a mapping as TOML. Each field has its meaning and the evidence for it as a comment."""
    evidence = {row["role"]: row["evidence"] for row in rows}
    lines = [HEAD.format(version=version)]
    for name, value in mapping:
        if value is None:
            continue  # a table that a person may add
        lines.append("")
        if isinstance(value, Table):
            lines += [f"# {type(value).__doc__}", f"[{name}]"]
            lines += _fields(name, value, evidence)
        elif isinstance(value, dict):
            lines += _named_tables(mapping, name, value, evidence)
        else:
            lines += _entry(mapping, name, evidence.get(name, ""))
    lines.append("")
    return "\n".join(lines)


def _fields(name: str, table: Table, evidence: dict[str, str]) -> Iterator[str]:
    """Yield the fields of a table, then its tables: TOML wants that order."""
    tables = {field: value for field, value in table if _has_tables(value)}
    for field in type(table).model_fields:
        if field not in tables:
            yield from _entry(table, field, evidence.get(f"{name}.{field}", ""))
    yield from _tables(name, tables)


def _has_tables(value: Any) -> bool:
    """Return whether a value has tables by name. One of texts by name is written in one line."""
    return isinstance(value, dict) and not any(isinstance(each, str) for each in value.values())


def _named_tables(
    mapping: Mapping, name: str, entries: dict[str, Any], evidence: dict[str, str]
) -> Iterator[str]:
    """Yield what a person named: tables, such as each kind of accepted fees, or values."""
    yield f"# {type(mapping).model_fields[name].description}"
    has_tables = any(isinstance(value, Table) for value in entries.values())
    if entries and not has_tables:
        yield f"[{name}]"
    for key, value in entries.items():
        if isinstance(value, Table):
            yield from _named_table(f"{name}.{_text(key)}", value)
        else:
            text = evidence.get(f"{name}.{key}", "")
            yield from [f"# {printable(text, LONGEST_COMMENT)}"] if text else []
            yield f"{_text(key)} = {_text(value)}"


def _named_table(name: str, table: Table) -> Iterator[str]:
    """Yield a table that a person named, then the tables in it, such as roles of own books."""
    yield f"[{name}]"
    inner = {term: value for term, value in table if isinstance(value, Table)}
    for term, _value_of_term in table:
        if term not in inner:
            yield from _entry(table, term)
    for term, value in inner.items():
        yield from _named_table(f"{name}.{term}", value)


def _tables(name: str, tables: dict[str, dict[str, Table]]) -> Iterator[str]:
    """Yield tables of a table, such as the tolerance of each currency."""
    for field, entries in tables.items():
        for key, table in entries.items():
            yield f"[{name}.{field}.{_text(key)}]"
            for term, value in table:
                if value is not None:
                    yield from _entry(table, term)


def _text(value: Any) -> str:
    """Return a value as TOML: but for one character, texts, numbers and lists are as in JSON."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        entries = ", ".join(f"{_text(key)} = {_text(entry)}" for key, entry in value.items())
        return f"{{ {entries} }}"
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")


def _entry(table: Table, name: str, evidence: str = "") -> list[str]:
    value = getattr(table, name)
    meaning = type(table).model_fields[name].description
    lines = [f"# {printable(text, LONGEST_COMMENT)}" for text in (meaning, evidence) if text]
    lines.append(f"# {name} =" if value is None else f"{name} = {_text(value)}")
    return lines

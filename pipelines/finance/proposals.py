"""`config/mapping.toml`: what is proposed for the published version, and what is accepted."""

import json
from collections.abc import Iterator
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pipelines.config.values import Table
from pipelines.core.errors import ConfigurationError
from pipelines.core.files import write_durably
from pipelines.core.text import printable
from pipelines.finance.mapping import Mapping, read_mapping
from pipelines.finance.reconcile.propose import propose_roles
from pipelines.finance.reconcile.roles import read_columns
from pipelines.publish.stores import Stores
from pipelines.warehouse.duckdb_file import Row

LONGEST_COMMENT: Final = 1_000
WITHOUT_FIELD: Final = ("partners.", "usage.amount_unit", "billing.amount_unit")
OTHER_VALUES: Final = ("billing.other_statuses", "billing.other_kinds")  # may well be none
HEAD: Final = """\
# Fields that have a role in reconciliation. Written by `partner-sync mapping accept` from version
# {}. After editing it, run `partner-sync reconcile`. Rules that need a role without a field
# are not evaluated."""


def propose(session: Stores) -> list[Row]:
    """Return for each role the proposed field and why, and the field it has in mapping.toml.

    `problem` says what is wrong with the latter. Raises PartnerSyncError, ConfigurationError.
    """
    current = read_mapping(session.home.mapping_file)
    with session.warehouse.open() as db:
        columns = read_columns(db)
        proposals = propose_roles(db, (current or Mapping()).partners)
    rows = []
    for role, (field, evidence) in proposals.items():
        fields = [each.path for each in columns if role.startswith(f"{each.stream}.")]
        value = _value(current, role)
        is_field = role in (current or Mapping()).fields() and value != _value(Mapping(), role)
        problem = _problem(role, value, fields) if is_field else ""
        found = {"role": role, "field": field, "evidence": evidence}
        shown = value if value or role in OTHER_VALUES else None
        rows.append(found | {"current_mapping": shown, "problem": problem})
    return rows


def accept(session: Stores, *, replace: bool = False) -> str:
    """Write the proposals to mapping.toml; return what was done, as a sentence.

    With `replace`, what a person set stays where nothing is proposed. Raises PartnerSyncError, and
    ConfigurationError where the file differs, or a field in it exists in no record.
    """
    file, rows = session.home.mapping_file, propose(session)
    current = read_mapping(file)
    tables = (current or Mapping()).model_dump()
    for row in rows:
        side, _, name = row["role"].partition(".")
        tables[side][name] = tables[side][name] if row["field"] is None else row["field"]
    mapping = Mapping.model_validate(tables)
    if mapping == current:
        return f"{file} already has every field that is proposed. It was not changed."
    if current and not replace:
        raise _another_mapping(file, rows)
    kept = [row for row in rows if row["problem"] and not row["field"]]
    if problems := [f"{row['role']}: {row['problem']}" for row in kept]:
        raise ConfigurationError(
            f"{file} was not changed. {' '.join(problems)}", f"Correct these fields in {file}."
        )
    if not any(row["field"] for row in rows if not row["role"].startswith(WITHOUT_FIELD)):
        raise ConfigurationError(
            "No field of usage or billing qualifies. Nothing was written.",
            "Run `partner-sync mapping propose` to see why.",
        )
    version = session.warehouse.require_published().number
    write_durably(file, _rendered(mapping, version, rows).encode())
    unknown = [row["role"] for row in rows if _value(mapping, row["role"]) in {None, ()}]
    unknown = [each for each in unknown if not each.startswith(OTHER_VALUES)]
    without = f" Without a field: {', '.join(unknown)}." if unknown else ""
    return f"Wrote {file}, {len(rows) - len(unknown)} of {len(rows)} roles.{without}"


def _another_mapping(file: Path, rows: list[Row]) -> ConfigurationError:
    changes = [
        f"{row['role']}: {_shown(row['current_mapping'])} -> {_shown(row['field'])}"
        for row in rows
        if row["field"] not in {None, row["current_mapping"]}
    ]
    return ConfigurationError(
        f"{file} differs from the proposal and was not changed. {'; '.join(changes)}.",
        "Run `partner-sync mapping accept --replace` to use the proposal. Time zone, grace "
        "days, tolerance, and roles for which nothing is proposed stay.",
    )


def _value(mapping: Mapping | None, role: str) -> Any:
    side, _, name = role.partition(".")
    return getattr(getattr(mapping, side), name) if mapping else None


def _problem(role: str, value: Any, fields: list[str]) -> str:
    """Return why a field that a person set cannot be right: no record has it."""
    if not isinstance(value, str) or not fields or value in fields:
        return ""
    near = [f" The nearest is {each}." for each in get_close_matches(value, fields, n=1)]
    return f"No record of {role.partition('.')[0]} has a field {value}.{''.join(near)}"


def _shown(value: Any) -> str:
    return (", ".join(value) if isinstance(value, tuple) else value) or "not mapped"


def _rendered(mapping: Mapping, version: int, rows: list[Row]) -> str:
    """Return a mapping as TOML. Each field has its meaning and the evidence for it as a comment."""
    evidence, lines = {row["role"]: row["evidence"] for row in rows}, [HEAD.format(version)]
    for name, value in mapping:
        if isinstance(value, Table):
            lines += ["", f"# {type(value).__doc__}", f"[{name}]"]
            tables = {key: each for key, each in value if isinstance(each, dict)}
            for field in (each for each in type(value).model_fields if each not in tables):
                lines += _entry(value, field, evidence.get(f"{name}.{field}", ""))
            lines += _tables(name, tables)
        else:
            lines += ["", *_entry(mapping, name)]
    return "\n".join([*lines, ""])


def _tables(name: str, tables: dict[str, dict[str, Table]]) -> Iterator[str]:
    """Yield tables of a table, such as the tolerance of each currency."""
    for field, entries in tables.items():
        for key, table in entries.items():
            yield f"[{name}.{field}.{_text(key)}]"
            for each, value in table:
                yield from _entry(table, each) if value is not None else ()


def _text(value: Any) -> str:
    """Return a value as TOML: but for one character, texts, numbers and lists are as in JSON."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")


def _entry(table: Table, name: str, evidence: str = "") -> list[str]:
    value, meaning = getattr(table, name), type(table).model_fields[name].description
    comments = [f"# {printable(each, LONGEST_COMMENT)}" for each in (meaning, evidence) if each]
    return [*comments, f"# {name} =" if value is None else f"{name} = {_text(value)}"]

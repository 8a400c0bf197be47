"""`config/mapping.toml`: what is proposed for the published version, and what is accepted."""

import json
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from textwrap import fill
from typing import Any, Final

from pipelines.app.session import AppSession
from pipelines.config.mapping import Mapping, read_mapping
from pipelines.config.values import Table
from pipelines.core.errors import ConfigurationError
from pipelines.core.files import write_durably
from pipelines.core.text import printable
from pipelines.reconcile.propose import Proposal, propose_roles
from pipelines.reconcile.roles import SIDES, read_columns

WIDTH: Final = 100
LONGEST_COMMENT: Final = 1_000
HEAD: Final = (
    "Fields that have a role in reconciliation. Written by `partner-sync mapping accept` from "
    "version {}. After editing it, run `partner-sync versions build`. Rules that need a role "
    "without a field are not evaluated."
)


@dataclass(frozen=True)
class _State:
    """The proposals for a version, the mapping in force, and the fields of each list."""

    version: int
    proposals: list[Proposal]
    current: Mapping | None
    fields: dict[str, list[str]]

    def merged(self) -> Mapping:
        """Return the mapping in force with everything that is proposed."""
        tables = (self.current or Mapping()).model_dump()
        for each in self.proposals:
            side, _, name = each.role.partition(".")
            if value := each.path or each.values:
                tables[side][name] = value
        return Mapping.model_validate(tables)

    def problem(self, mapping: Mapping | None, role: str) -> str:
        """Return what is wrong with the field of a role: no record has it. Empty if nothing is."""
        value, side = _value(mapping, role), role.partition(".")[0]
        fields = self.fields.get(side, [])
        is_given = isinstance(value, str) and value != _value(Mapping(), role)
        if not is_given or not fields or value in fields:
            return ""
        near = [f" The nearest is {each}." for each in get_close_matches(value, fields, n=1)]
        return f"No record of {side} has a field {value}.{''.join(near)}"


def propose(session: AppSession) -> list[dict[str, Any]]:
    """Return for each role the proposed field and why, and the field it has in mapping.toml.

    `problem` says what is wrong with the latter. Raises VersionNotFound, ConfigurationError.
    """
    state = _read(session)
    return [
        {
            "role": each.role,
            "field": each.path or list(each.values) or None,
            "evidence": each.evidence,
            "current_mapping": _value(state.current, each.role) or None,
            "problem": state.problem(state.current, each.role),
        }
        for each in state.proposals
    ]


def accept(session: AppSession, *, replace: bool = False) -> str:
    """Write the proposals to mapping.toml; return what was done, as a sentence.

    With `replace`, what a person set stays where nothing is proposed. Raises VersionNotFound, and
    ConfigurationError where the file differs, or a field in it exists in no record.
    """
    file, state = session.home.mapping_file, _read(session)
    mapping = state.merged()
    if mapping == state.current:
        return f"{file} already has every field that is proposed. It was not changed."
    roles = [each.role for each in state.proposals]
    changes = [
        f"{role}: {_shown(_value(state.current, role))} -> {_shown(_value(mapping, role))}"
        for role in roles
        if _value(state.current, role) != _value(mapping, role)
    ]
    if state.current and not replace:
        raise ConfigurationError(
            f"{file} differs from the proposal and was not changed. {'; '.join(changes)}.",
            "Run `partner-sync mapping accept --replace` to use the proposal. Time zone, grace "
            "days, tolerance, and roles for which nothing is proposed stay.",
        )
    problems = [f"{role}: {text}" for role in roles if (text := state.problem(mapping, role))]
    if problems:
        raise ConfigurationError(
            f"{file} was not changed. {' '.join(problems)}", f"Correct these fields in {file}."
        )
    if not any(each.path for each in state.proposals if not each.role.startswith("partners.")):
        raise ConfigurationError(
            "No field of usage or billing is proposed. Nothing was written.",
            "Run `partner-sync mapping propose` to see why.",
        )
    write_durably(file, _rendered(mapping, state).encode())
    unknown = [each.role for each in state.proposals if not _value(mapping, each.role)]
    without = f" Without a field: {', '.join(unknown)}." if unknown else ""
    return f"Wrote {file}, {len(roles) - len(unknown)} of {len(roles)} roles.{without}"


def _read(session: AppSession) -> _State:
    version = session.warehouse.require_published()
    current = read_mapping(session.home.mapping_file)
    with closing(session.warehouse.open(version.number)) as db:
        fields: dict[str, list[str]] = {}
        for column in read_columns(db):
            fields.setdefault(column.stream, []).append(column.path)
        proposals = propose_roles(db, (current or Mapping()).partners)
    return _State(version.number, proposals, current, fields)


def _value(mapping: Mapping | None, role: str) -> Any:
    side, _, name = role.partition(".")
    return getattr(getattr(mapping, side), name) if mapping else None


def _shown(value: Any) -> str:
    return (", ".join(value) if isinstance(value, tuple) else value) or "not mapped"


def _rendered(mapping: Mapping, state: _State) -> str:
    """Return a mapping as TOML. Each field has its meaning and the evidence for it as a comment."""
    evidence = {each.role: each.evidence for each in state.proposals}
    lines = [*_comment(HEAD.format(state.version))]
    for name, value in mapping:
        if not isinstance(value, Table):
            lines += ["", *_entry(mapping, name)]
    for side in (*SIDES, "tolerance"):
        table = getattr(mapping, side)
        lines += ["", *_comment(type(table).__doc__ or ""), f"[{side}]"]
        for name in type(table).model_fields:
            lines += _entry(table, name, evidence.get(f"{side}.{name}", ""))
    return "\n".join([*lines, ""])


def _entry(table: Table, name: str, evidence: str = "") -> list[str]:
    value, meaning = getattr(table, name), type(table).model_fields[name].description or ""
    if isinstance(value, Decimal):
        text = f"{value:f}"
    else:  # texts, whole numbers and lists look the same in JSON and TOML, but for this character
        text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    line = f"# {name} =" if value is None else f"{name} = {text}"
    return [*_comment(meaning), *_comment(evidence), line]


def _comment(text: str) -> list[str]:
    shown = printable(" ".join(text.split()), LONGEST_COMMENT)
    wrapped = fill(shown, WIDTH, initial_indent="# ", subsequent_indent="# ")
    return wrapped.splitlines()

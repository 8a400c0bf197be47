"""The roles of the mapping, looked for in an order in which each finding helps the next.

Keys first, then what refers to them, then money, which needs the currency; at last what only its
name tells, and what the findings say of each other. Not here: how one role is found (proposing).
"""

from collections.abc import Mapping, Sequence
from functools import partial

import duckdb

from pipelines.run import hints, measures
from pipelines.run.fields import Field, Fields
from pipelines.run.proposing import Finding, Proposal, candidates

USED = ("usage.quantity", "usage.price", "usage.amount")
BILLED = ("billing.line_quantity", "billing.line_price", "billing.line_amount")
LABELS = ("organization", "plan", "metric", "number", "kind")
MOMENTS = ("period", "issued", "recorded", "updated")


def proposed(database: duckdb.DuckDBPyConnection, streams: Mapping[str, Fields]) -> list[Proposal]:
    """Propose every role of the mapping; `streams` are partners, usage and billing by that name."""
    finding = Finding(database)
    for name, each in streams.items():
        others = [one for other in streams.values() if other is not each for one in other.found]
        finding.key(f"{name}.id", each, others)
    for name in ("usage", "billing"):
        fields = finding.free(name, streams[name].outer)
        _currency(finding, f"{name}.currency", fields)
        finding.refers(f"{name}.partner", finding.free(name, fields), "partners.id")
    lines = _lines(finding, streams["billing"])
    _money(finding, streams["usage"].outer, lines)
    _total(finding, streams["billing"], lines)
    for name, each in streams.items():
        _named(finding, name, each.outer)
    _line_plan(finding, lines)
    _agree(finding)
    return [_read(each, streams) for each in finding.proposals]


def _read(proposal: Proposal, streams: Mapping[str, Fields]) -> Proposal:
    """Say of the roles of a list that there is none of it."""
    of = streams[proposal.role.partition(".")[0]]
    if of.found:
        return proposal
    words = f"there is no table current.{of.stream}: no list of that name was read"
    return Proposal(proposal.role, None, (words,))


def _currency(finding: Finding, role: str, fields: Sequence[Field]) -> None:
    texts = [each for each in fields if each.textual]
    measure = partial(measures.codes, finding.database)
    finding.best(role, candidates(role, texts, measure), "are currencies of ISO 4217")


def _lines(finding: Finding, billing: Fields) -> list[Field]:
    """Find which array of a bill has its lines, by what refers to usage; return their fields."""
    role = "billing.line_usage"
    inner = [each for array in billing.arrays for each in array]
    finding.refers(role, inner, "usage.id", once=True)
    if role not in finding.roles:  # a bill of one used row has it itself
        whole = list(finding.said[role])
        finding.refers(role, finding.free("billing", billing.outer), "usage.id", once=True)
        if role not in finding.roles:
            finding.said[role] = whole
    reference = finding.roles.get(role)
    arrays = billing.arrays
    if reference is not None:
        arrays = [each for each in arrays if reference in each]
    return arrays[0] if len(arrays) == 1 else []


def _money(finding: Finding, used: Sequence[Field], lines: Sequence[Field]) -> None:
    for roles, fields in ((USED, used), (BILLED, lines)):
        stream = roles[0].partition(".")[0]
        numbers = [each for each in finding.free(stream, fields) if each.numeric]
        currency = finding.roles.get(f"{stream}.currency")
        found = measures.products(finding.database, numbers, currency)
        finding.multiplied(roles, found)
        for role in roles:
            if role not in finding.roles and role not in finding.said:
                _number(finding, role, finding.free(stream, numbers))


def _number(finding: Finding, role: str, numbers: Sequence[Field]) -> None:
    measure = partial(measures.filled, finding.database)
    finding.called(role, numbers, measure, "have a number; no product shows that it is")


def _total(finding: Finding, billing: Fields, lines: Sequence[Field]) -> None:
    """Find which number of a bill its lines add up to."""
    role, item = "billing.amount", finding.roles.get("billing.line_amount")
    numbers = [each for each in finding.free("billing", billing.outer) if each.numeric]
    if item is not None and item in lines:
        measure = partial(measures.sums, finding.database, item)
        finding.best(
            role, candidates(role, numbers, measure), f"are the sum of the bill's {item.path}"
        )
    if role not in finding.roles:
        _number(finding, role, numbers)


def _named(finding: Finding, stream: str, fields: Sequence[Field]) -> None:
    """Find what only a name can tell: labels among texts, times among what is a date."""
    for role in hints.HINTS:
        owner, _, noun = role.partition(".")
        if owner != stream or role in finding.roles:
            continue
        free = finding.free(stream, fields)
        if noun in MOMENTS:
            times = [each for each in free if each.moment or each.textual]
            measure = partial(measures.dates, finding.database)
            finding.called(role, times, measure, "are dates or times")
        elif noun in {*LABELS, "name", "external_id"}:
            labels = [each for each in free if each.textual or each.whole]
            measure = partial(measures.filled, finding.database)
            finding.called(role, labels, measure, "have a value")


def _line_plan(finding: Finding, lines: Sequence[Field]) -> None:
    labels = [each for each in finding.free("billing", lines) if each.textual]
    measure = partial(measures.filled, finding.database)
    finding.called("billing.line_plan", labels, measure, "have a value")


def _agree(finding: Finding) -> None:
    """Add what the roles that were found say of each other."""
    roles, database = finding.roles, finding.database
    pairs = (
        ("usage.organization", "usage.partner", "have one partner each", measures.one_each),
        ("usage.plan", "usage.price", "have one price each", measures.one_each),
        ("usage.recorded", "usage.period", "are not before their period", measures.not_before),
        ("usage.updated", "usage.recorded", "are not before recorded", measures.not_before),
        ("billing.issued", "billing.period", "are not before their period", measures.not_before),
    )
    for role, other, words, measure in pairs:
        if role in roles and other in roles:
            finding.add(role, measure(database, roles[role], roles[other]), words)
    if not {"billing.line_usage", "usage.id"} <= roles.keys():
        return
    reference, key = roles["billing.line_usage"], roles["usage.id"]
    if "billing.line_amount" in roles and "usage.amount" in roles:
        amounts = (roles["billing.line_amount"], roles["usage.amount"])
        share = measures.equal(database, ((reference, key), amounts))
        finding.add("billing.line_amount", share, "are the amount of the used row")
    if reference.inner and {"usage.period", "billing.period"} <= roles.keys():
        periods = (roles["usage.period"], roles["billing.period"])
        share = measures.same_month(database, reference, key, periods)
        finding.add("usage.period", share, "billed are in the month of their bill")

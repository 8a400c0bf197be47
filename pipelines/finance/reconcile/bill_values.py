"""Here: which statuses, kinds and accepted fees of bills the mapping lists, as expressions of SQL.

Not here: how the values are read (readings), the statements in which the expressions stand
(row_statements).
"""

from collections.abc import Collection, Iterable

from pipelines.core.text import quote_text
from pipelines.finance.currencies import SPACES, lower_trimmed
from pipelines.finance.mapping import NO_STATUS, ORDINARY_WORDS, UNCOUNTED_WORDS, Mapping


def unseen(mapping: Mapping, roles: Collection[str], names: dict[str, str]) -> str:
    """Return the expression of a bill's status or kind that the mapping has not seen, else NULL.

    `roles` are those that have a column; `names` has the expressions of the side.
    """
    cases = []
    if "billing.status" in roles:
        cases.append(_unseen_status(mapping, names))
    if "billing.kind" in roles:
        cases.append(_unseen_kind(mapping, names))
    return _first_of(cases)


def _unseen_status(mapping: Mapping, names: dict[str, str]) -> str:
    """Return the case of a status that the mapping does not list."""
    roles = mapping.billing
    status = f"coalesce({names['status_read']}, '{NO_STATUS}')"
    if roles.other_statuses is not None:
        is_other = f"list_contains({names['other_statuses']}, {status})"
    else:
        is_other = f"regexp_matches({status}, '{UNCOUNTED_WORDS}')"
    is_counted = f"list_contains({names['counted_statuses']}, {status})"
    if not roles.counted_statuses and roles.other_statuses is None:
        # All of them count. One whose words say that it does not is reported.
        is_counted = f"NOT {is_other}"
        is_other = "false"
    text = f"coalesce('status ' || {names['status']}, '{NO_STATUS}')"
    is_known = f"{names['status_fails']} OR {is_counted} OR {is_other}"
    return f"WHEN NOT ({is_known}) THEN {text}"


def _unseen_kind(mapping: Mapping, names: dict[str, str]) -> str:
    """Return the case of a kind of document that the mapping does not list."""
    kind = names["kind_read"]
    if mapping.billing.other_kinds is not None:
        is_other = f"list_contains({names['other_kinds']}, {kind})"
    else:
        is_other = f"regexp_matches({kind}, '{ORDINARY_WORDS}')"
    is_credit = f"list_contains({names['credit_kinds']}, {kind})"
    return f"WHEN NOT ({is_credit} OR {is_other}) THEN concat('kind ', {names['kind']})"


def fee(mapping: Mapping, values: dict[str, str]) -> str:
    """Return the expression of the accepted fee that a row is, else NULL.

    `values` has the expressions of the roles that the row has: a record or a line.
    """
    cases = []
    for role, kind in mapping.fee_roles().items():
        if role in values:
            accepted = listed(mapping.accepted_fees[kind].values)
            value = compared(values[role])
            cases.append(f"WHEN list_contains({accepted}, {value}) THEN {quote_text(kind)}")
    return _first_of(cases)


def unread_line(unread: dict[str, str], currency: str) -> dict[str, str]:
    """Return what of a line cannot be compared: what cannot be read, or another currency.

    `unread` has the expressions of the first. The amount of a line is one in the currency of its
    bill, so that lines add up to the total.
    """
    is_other = f"{currency} <> bills.currency"
    other = f"CASE WHEN {is_other} THEN 'line_currency' END"
    other_text = f"CASE WHEN {is_other} THEN {currency} END"
    return {
        "unread": f"nullif(concat_ws(',', {unread['unread']}, {other}), '')",
        "unread_text": f"coalesce({unread['unread_text']}, {other_text})",
    }


def compared(value: str) -> str:
    """Return the expression of a status or kind as it is compared; see `lower_trimmed`."""
    return f"lower(trim({value}, '{SPACES}'))"


def listed(values: Iterable[str]) -> str:
    """Return values of a status or kind as a list, which are compared without case and spaces."""
    texts = ", ".join(quote_text(lower_trimmed(value)) for value in values)
    return f"[{texts}]::VARCHAR[]"


def _first_of(cases: list[str]) -> str:
    return f"CASE {' '.join(cases)} END" if cases else "NULL::VARCHAR"

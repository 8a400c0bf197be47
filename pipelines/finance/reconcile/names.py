"""The usual names of fields: how well a field is named for a role."""

from typing import Final

from pipelines.finance.reconcile.roles import NUMBERS, Column, words

UNNAMED = 1_000.0  # rank of a name that says nothing
NAMES: Final = {  # usual ones, the likeliest first; a field's name has all words of one
    "id": "usage id, billing id, bill id, invoice id, document id, document no, record id, id",
    "partner": "partner id, partner, reseller, distributor, account",
    "organization": "organization, organisation, org, customer, merchant, tenant, account",
    "period": "period start, service period, period, start, from, month, day, date, timestamp",
    "plan": "plan id, plan, product, sku, tier, item, service",
    "metric": "metric, meter, measure, dimension, unit",
    "quantity": "quantity, qty, volume, consumed, unit, usage, count",
    "price": "unit price, price, rate, unit cost",
    "amount": "total, amount, gross, charge, cost, fee, value",
    "currency": "currency, ccy",
    "recorded": "recorded, booked, logged, ingested, received, reported, created",
    "updated": "updated, modified, changed, revised",
    "issued": "issued, issue, invoice date, bill date, document date, invoiced, billed, created",
    "number": "invoice number, bill number, document number, number, serial, document no",
    "status": "status, state",
    "kind": "kind, document type, bill type, invoice type, type",
    "usage": "usage id, usage, record id, event id",
}
OTHERS: Final = {"tax", "vat", "discount", "due", "payable", "expiry"}  # have no role
IDENTIFIERS: Final = {  # last words of names whose numbers are no amounts
    "account", "center", "centre", "code", "id", "key", "no", "number", "ref", "reference",
}  # fmt: skip


def is_number_named(column: Column) -> bool:
    """Return whether a field may be an amount, a price or a quantity, as far as its name says."""
    found = words(column.path)
    return not OTHERS & {*found} and IDENTIFIERS.isdisjoint(found[-1:])


def rank(role: str, column: Column) -> float:
    """Return how well a field is named for a role, 0 the best; UNNAMED if it is not."""
    name = role.partition(".")[2].removeprefix("line_")
    if name in NUMBERS and not is_number_named(column):
        return UNNAMED
    found = set(words(column.path.rpartition("[].")[2]))
    usual = NAMES.get(name)
    for place, each in enumerate(usual.split(", ") if usual and not OTHERS & found else ()):
        if found >= set(each.split()) or each.replace(" ", "") in found:
            return place + len(found - set(each.split())) / 100
    return UNNAMED

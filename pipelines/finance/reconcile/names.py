"""The usual names of fields: how well a field is named for a role."""

from typing import Final

from pipelines.finance.reconcile.roles import NUMBERS, FieldColumn, name_of, words

UNNAMED: Final = 1_000.0  # rank of a name that says nothing
# Usual names, the likeliest first. A field's name has all words of one of them, in any order.
NAMES: Final = {
    "id": "usage id, billing id, bill id, invoice id, document id, document no, record id, id",
    "partner": "partner id, partner, reseller, distributor, account",
    "organization": "organization, organisation, org, customer, merchant, tenant, account",
    "period": "period start, service period, period, start, from, month, day, date, timestamp",
    "plan": "plan id, plan, product, sku, tier, item, service",
    "metric": "metric, meter, measure, dimension",
    "unit": "unit of measure, uom, quantity unit, unit",
    "region": "region",
    "quantity": "quantity, qty, volume, consumed, unit, usage, count",
    "price": "unit price, price, rate, unit cost",
    "amount": "total, amount, gross, charge, cost, fee, value",
    "currency": "currency, ccy",
    "recorded": "recorded, booked, logged, ingested, received, reported, created",
    "updated": "updated, modified, changed, revised",
    "issued": "issued, issue, invoice date, bill date, document date, invoiced, billed, created",
    "due": "due date, due day, due, payable by, payable, pay by",
    "paid": "paid date, paid, payment date, settled",
    "open": "amount due, balance due, amount open, amount outstanding, amount remaining",
    "tax": "tax amount, tax, vat amount, vat",
    "number": "invoice number, bill number, document number, number, serial, document no",
    "status": "status, state",
    "kind": "kind, document type, bill type, invoice type, type",
    "usage": "usage id, usage, record id, event id",
}
# Words of fields that have no role, though other words of their names fit one: taxAmount.
OTHERS: Final = {"tax", "vat", "discount", "due", "payable", "expiry"}
# Those that fields of a role may have all the same; and more that fields of tax have not.
OWN: Final = {"due": {"due", "payable"}, "open": {"due"}, "tax": {"tax", "vat"}}
NO_TAX: Final = {"rate", "percent", "percentage"}
# Last words of names whose numbers are no amounts.
IDENTIFIERS: Final = {
    "account", "center", "centre", "code", "id", "key", "no", "number", "ref", "reference",
}  # fmt: skip


def is_number_named(column: FieldColumn) -> bool:
    """Return whether a field may be an amount, a price or a quantity, as far as its name says."""
    name = words(column.path)
    has_last_word_of_identifier = not IDENTIFIERS.isdisjoint(name[-1:])
    return OTHERS.isdisjoint(name) and not has_last_word_of_identifier


def rank(role: str, column: FieldColumn) -> float:
    """Return how well a field is named for a role, 0 the best; UNNAMED if it is not."""
    measure = name_of(role).removeprefix("line_")
    if measure in NUMBERS and not is_number_named(column):
        return UNNAMED
    last_words = words(column.path.rpartition("[].")[2])
    name = set(last_words)
    others = OTHERS - OWN.get(measure, set())
    if measure in {"open", "tax"}:
        others |= NO_TAX | IDENTIFIERS.intersection(last_words[-1:])
    if measure not in NAMES or others & name:
        return UNNAMED
    for place, usual in enumerate(NAMES[measure].split(", ")):
        usual_words = set(usual.split())
        if name >= usual_words or usual.replace(" ", "") in name:
            # Of two fields with the same usual name, the one with fewer other words is better.
            return place + len(name - usual_words) / 100
    return UNNAMED

"""What is written of an organization before anybody calls: a few notes, alerts and requests.

Here: seeded records that callers may change and delete, put into the store once. Not here: the
records that nobody writes (people, ledger).
"""

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import Engine, Table, insert, select

from sandbox.data.scripts import NOTES
from sandbox.merchant import tables
from sandbox.merchant.book import Book
from sandbox.merchant.ledger import customer_id, invoices
from sandbox.merchant.office import Office, before_epoch, minor, moment
from sandbox.merchant.people import CUSTOMERS

Row = tuple[Table, dict[str, Any]]
NOTE_EVERY, REPLY_EVERY, ALERT_EVERY = 3, 2, 10  # customers, notes, customers
REQUESTS = 24
REQUEST_DAYS = 14  # until it expires
AUTHOR = "office"
PAGES = "https://pay.sandbox.invalid"  # RFC 6761: this name leads nowhere
TEXTS = tuple(text for note in NOTES if (text := note.strip('"')) and "\\" not in text)


def begin(engine: Engine, books: Iterable[Book]) -> None:
    """Write what organizations begin with, unless the store has begun with them before."""
    for book in books:
        office = book.office
        with engine.begin() as connection:  # all of it or nothing, should the process be killed
            known = select(tables.begun).filter_by(organization=office.id)
            rows = [] if connection.execute(known).first() else list(_rows(office))
            for table, row in rows:
                connection.execute(insert(table).values(row | {"organization": office.id}))


def _rows(office: Office) -> Iterator[Row]:
    yield tables.begun, {}
    for write in (_notes, _alerts, _requests, _links):
        yield from write(office)


def _notes(office: Office) -> Iterator[Row]:
    for index in range(0, CUSTOMERS, NOTE_EVERY):
        draw, customer = office.draw("notes", index), customer_id(office, index)
        at = moment(before_epoch(90 - index, draw.choices[0]))
        text = {"text": draw.of(TEXTS, 1), "author": AUTHOR, "createdAt": at}
        note = {"noteId": draw.id, "customerId": customer, **text}
        note |= {"status": draw.of(("open", "resolved"), 2), "updatedAt": at}
        yield tables.notes, {"id": draw.id, "customer": customer, "document": note}
        if index % REPLY_EVERY == 0:
            reply_id = office.draw("replies", index).id
            reply = {"replyId": reply_id, "noteId": draw.id, "customerId": customer, **text}
            yield tables.replies, {"id": reply_id, "note": draw.id, "document": reply}


def _alerts(office: Office) -> Iterator[Row]:
    for index in range(0, CUSTOMERS, ALERT_EVERY):
        draw, customer = office.draw("alerts", index), customer_id(office, index)
        alert = {
            "customerId": customer,
            "message": draw.of(TEXTS, 0),
            "severity": draw.of(("info", "warning", "critical"), 1),
            "author": AUTHOR,
            "updatedAt": moment(before_epoch(draw.choices[2])),
        }
        yield tables.alerts, {"id": customer, "document": alert}


def _requests(office: Office) -> Iterator[Row]:
    for index in range(REQUESTS):
        draw = office.draw("payment-method-requests", index)
        days = 60 - 2 * index
        pending = days < REQUEST_DAYS
        request = {
            "paymentMethodRequestId": draw.id,
            "customerId": customer_id(office, draw.number(0)),
            "kinds": list(draw.of((("card",), ("card", "bank_account")), 2)),
            "message": draw.of((None, *TEXTS), 3),
            "status": "pending" if pending else draw.of(("completed", "expired"), 4),
            "createdAt": moment(before_epoch(days)),
            "expiresAt": moment(before_epoch(days - REQUEST_DAYS)),
        }
        yield tables.payment_method_requests, {"id": draw.id, "document": request}


def _links(office: Office) -> Iterator[Row]:
    due = next(one for one in invoices(office) if minor(one["amountDue"]))
    for kind, of in (("applied", [due["invoiceId"]]), ("unapplied", [])):
        draw = office.draw(kind, 0)
        link = {
            "paymentLinkId": draw.id,
            "kind": kind,
            "customerId": due["customerId"],
            "invoiceIds": of,
            "amount": due["amountDue"],
            "currency": office.currency,
            "description": None,
            "url": f"{PAGES}/{draw.id}",
            "status": "open",
            "createdAt": moment(before_epoch(3)),
            "expiresAt": moment(before_epoch(-27)),
        }
        yield tables.payment_links, {"id": draw.id, "kind": kind, "document": link}

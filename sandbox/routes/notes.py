"""Customer notes: notes, their status, their replies, and the alert that a customer may have.

Here: what each operation reads and writes. A body is looked at before what the path names, so
that a wrong one is always a 400. Not here: permission and answers (desk).
"""

from fastapi import APIRouter
from starlette.responses import Response

from sandbox.data.listing import Listing
from sandbox.merchant.bodies import AlertBody, NoteBody, NoteStatusBody, ReplyBody
from sandbox.merchant.book import JSON
from sandbox.merchant.office import moment
from sandbox.merchant.written import new_id
from sandbox.routes.desk import Desk, Visit, answer, created, gone, present


def add_notes(desk: Desk, router: APIRouter) -> None:
    """Add the routes of customer notes."""
    desk.add_list(router, "notes", notes)
    desk.add_list(router, "replies", replies)
    for handle in (
        *(create_note, note, update_note, set_status, delete_note),
        *(create_reply, reply, delete_reply, alert, set_alert, delete_alert),
    ):
        desk.add(router, handle.__name__, handle)


def _customer(visit: Visit) -> str:
    return str(visit.customer(visit.part("customerId"))["customerId"])


def _note(visit: Visit) -> JSON:
    owner = {"organization": visit.organization, "customer": _customer(visit)}
    return present(visit.written.notes.get(visit.part("noteId"), **owner), "note")


def notes(visit: Visit) -> Listing:
    """List the notes on a customer."""
    customer = _customer(visit)
    return visit.written.notes.listing(organization=visit.organization, customer=customer)


async def create_note(visit: Visit) -> Response:
    """Create a note on a customer."""
    body, note_id, at = await visit.body(NoteBody), new_id(), moment(visit.now())
    customer = _customer(visit)
    record: JSON = {"noteId": note_id, "customerId": customer, "text": body.text}
    record |= {"status": "open", "author": visit.key.login, "createdAt": at, "updatedAt": at}
    owner = {"organization": visit.organization, "customer": customer}
    visit.written.notes.create(note_id, record, **owner)
    return created(record, f"{visit.request.url.path}/{note_id}")


async def note(visit: Visit) -> Response:
    """Answer one note."""
    return answer(_note(visit))


async def update_note(visit: Visit) -> Response:
    """Change the text of a note."""
    body = await visit.body(NoteBody)
    return _changed(visit, {"text": body.text})


async def set_status(visit: Visit) -> Response:
    """Set the status of a note."""
    body = await visit.body(NoteStatusBody)
    return _changed(visit, {"status": body.status})


def _changed(visit: Visit, change: JSON) -> Response:
    record = _note(visit) | change | {"updatedAt": moment(visit.now())}
    visit.written.notes.change(record["noteId"], record)
    return answer(record)


async def delete_note(visit: Visit) -> Response:
    """Delete a note and its replies."""
    note_id = _note(visit)["noteId"]
    visit.written.notes.delete(note_id, organization=visit.organization)
    return gone()


def replies(visit: Visit) -> Listing:
    """List the replies to a note."""
    note_id = _note(visit)["noteId"]
    return visit.written.replies.listing(organization=visit.organization, note=note_id)


async def create_reply(visit: Visit) -> Response:
    """Reply to a note."""
    body, reply_id = await visit.body(ReplyBody), new_id()
    parent = {name: _note(visit)[name] for name in ("noteId", "customerId")}
    record: JSON = {"replyId": reply_id, **parent, "text": body.text}
    record |= {"author": visit.key.login, "createdAt": moment(visit.now())}
    owner = {"organization": visit.organization, "note": parent["noteId"]}
    visit.written.replies.create(reply_id, record, **owner)
    return created(record, f"{visit.request.url.path}/{reply_id}")


def _reply(visit: Visit) -> JSON:
    owner = {"organization": visit.organization, "note": _note(visit)["noteId"]}
    return present(visit.written.replies.get(visit.part("replyId"), **owner), "reply")


async def reply(visit: Visit) -> Response:
    """Answer one reply."""
    return answer(_reply(visit))


async def delete_reply(visit: Visit) -> Response:
    """Delete a reply."""
    visit.written.replies.delete(_reply(visit)["replyId"], organization=visit.organization)
    return gone()


def _alert(visit: Visit) -> JSON | None:
    return visit.written.alerts.get(_customer(visit), organization=visit.organization)


async def alert(visit: Visit) -> Response:
    """Answer the alert of a customer."""
    return answer(present(_alert(visit), "alert"))


async def set_alert(visit: Visit) -> Response:
    """Give a customer this alert in place of any other: 201 where there was none."""
    body = await visit.body(AlertBody)
    customer, before = _customer(visit), _alert(visit)
    record: JSON = {"customerId": customer, "message": body.message, "severity": body.severity}
    record |= {"author": visit.key.login, "updatedAt": moment(visit.now())}
    if before:
        visit.written.alerts.change(customer, record)
        return answer(record)
    visit.written.alerts.create(customer, record, organization=visit.organization)
    return created(record, visit.request.url.path)


async def delete_alert(visit: Visit) -> Response:
    """Delete the alert of a customer."""
    alerted = present(_alert(visit), "alert")["customerId"]
    visit.written.alerts.delete(alerted, organization=visit.organization)
    return gone()

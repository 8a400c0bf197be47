"""Records that are wrong: drifted columns and types, broken values, broken keys.

Here: the middle record of a page, or all of a page for drift from an offset on. Not here: the
envelope. Bytes are written by hand where no honest encoder would write them.
"""

from functools import partial

from sandbox.faults.kind import Kind, Stage
from sandbox.faults.page import Page


def _middle(page: Page) -> int | None:
    return len(page.rows) // 2 if page.rows else None


def _append(page: Page, member: bytes) -> None:
    place = _middle(page)
    if place is not None:
        page.rows[place] = page.rows[place][:-1] + b"," + member + b"}"


def _names(row: bytes) -> list[str]:
    return list(Page.fields(row))


def column_appears(page: Page, value: float) -> None:
    """Give every record one more field, from an offset on."""
    if page.offset >= value:
        for place in range(len(page.rows)):
            page.change(place, appearedLater=b'"new"')


def column_disappears(page: Page, value: float) -> None:
    """Leave out the last field of every record, from an offset on."""
    if page.offset >= value:
        for place, row in enumerate(page.rows):
            page.remove(place, _names(row)[-1])


def number_becomes_text(page: Page, value: float) -> None:
    """Write every number of every record as a text, from an offset on."""
    if page.offset < value:
        return
    for place, row in enumerate(page.rows):
        numbers = {
            name: b'"%b"' % bytes(raw)
            for name, raw in Page.fields(row).items()
            if bytes(raw)[:1] in b"-0123456789"
        }
        page.change(place, **numbers)


def text_becomes_object(page: Page, value: float) -> None:
    """Make objects of the texts of one column, from an offset on."""
    if page.offset < value or not page.rows:
        return
    texts = [name for name, raw in Page.fields(page.rows[0]).items() if bytes(raw)[:1] == b'"']
    column = texts[-1]  # the first text is the key
    for place, row in enumerate(page.rows):
        was = Page.fields(row).get(column)
        if was is not None:
            page.change(place, **{column: b'{"value":%b}' % bytes(was)})


def same_key_other_content(page: Page, _value: None) -> None:
    """Repeat a record of the page with other content under the same key."""
    place = _middle(page)
    if place is not None:
        page.rows.insert(place, page.rows[place])
        last = _names(page.rows[place])[-1]
        page.change(place + 1, **{last: b'"changed"'})


def without_key(page: Page, _value: None) -> None:
    """Leave out the key of a record."""
    place = _middle(page)
    if place is not None:
        page.remove(place, _names(page.rows[place])[0])


def null_key(page: Page, _value: None) -> None:
    """Write null as the key of a record."""
    place = _middle(page)
    if place is not None:
        page.change(place, **{_names(page.rows[place])[0]: b"null"})


def item_no_object(page: Page, _value: None) -> None:
    """Put a text where a record should be."""
    place = _middle(page)
    if place is not None:
        page.rows[place] = b'"not an object"'


def same_name_twice(page: Page, _value: None) -> None:
    """Write a member of a record twice, the second time with other content."""
    place = _middle(page)
    if place is not None:
        name = _names(page.rows[place])[-1].encode()
        _append(page, b'"%b":"second"' % name)


def member(text: bytes, page: Page, _value: None) -> None:
    """Append a member to a record."""
    _append(page, text)


PAGE = Stage.PAGE
DEEP = b'"deep":' + 100 * b"[" + 100 * b"]"
FAMILY = (
    Kind("column-appears", "one field more from offset value on", PAGE, column_appears, 0.0),
    Kind("column-disappears", "last field gone from offset value on", PAGE, column_disappears, 0.0),
    Kind("number-text", "numbers as texts from offset value on", PAGE, number_becomes_text, 0.0),
    Kind("text-object", "a text an object from offset value on", PAGE, text_becomes_object, 0.0),
    Kind("key-twice", "one row more: a key twice, other content", PAGE, same_key_other_content),
    Kind("no-key", "a record without its key", PAGE, without_key),
    Kind("null-key", "a record whose key is null", PAGE, null_key),
    Kind("no-record", "an item that is a text", PAGE, item_no_object),
    Kind("name-twice", "a record with one member twice", PAGE, same_name_twice),
    Kind("nan", "a record with NaN", PAGE, partial(member, b'"odd":NaN')),
    Kind("infinity", "a record with Infinity", PAGE, partial(member, b'"odd":-Infinity')),
    Kind("huge", "a record with 1e999", PAGE, partial(member, b'"odd":1e999')),
    Kind("surrogate", "a record with half a pair", PAGE, partial(member, b'"odd":"\\ud83d"')),
    Kind("deep", "a record nested 100 deep", PAGE, partial(member, DEEP)),
)

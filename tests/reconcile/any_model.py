"""What reconciliation must find in books, in plain Python: breaks, sums, verdicts."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

from tests.reconcile.any_books import Bill, Books, Line, Odd, Used

ZERO = Decimal(0)
COUNTED, KNOWN_UNCOUNTED = {"paid"}, {"void", "draft"}
Cell = tuple[Any, Any, Any]  # partner, month, currency; None where it cannot be read
Break = tuple[str, Any, Any, Any, Decimal | None]


def said(value: Any) -> Any:
    """Return what a value says; None if it cannot be read."""
    return None if isinstance(value, Odd) else value


def is_odd(each: Any) -> bool:
    """Return whether a value of a record cannot be read."""
    return any(isinstance(getattr(each, name.name), Odd) for name in fields(each))


def cell_of(each: Used | Bill) -> Cell:
    return said(each.partner), said(each.month), said(each.currency)


@dataclass
class Row:
    """A record of usage, or a line of a bill that counts or is a credit note."""

    key: str
    cell: Cell
    amount: Any
    quantity: Any
    bill: Bill | None
    is_odd: bool

    @property
    def is_credit(self) -> bool:
        return self.bill is not None and self.bill.kind == "credit"


class Model:
    """The figures of all partners' books, by usage. `known` are the partners of the list."""

    def __init__(self, books: Sequence[Books], known: set[str]) -> None:
        self.usage = [each for one in books for each in one.usage]
        every = [each for one in books for each in one.bills]
        self.bills = [
            each for each in every if isinstance(each.status, Odd) or each.status in COUNTED
        ]
        self._known = known
        self._new = {  # usage whose bill has a status that the mapping does not list
            line.usage: str(each.status)
            for each in every
            if each not in self.bills and each.status not in KNOWN_UNCOUNTED
            for line in each.lines
        }
        self.breaks = Counter[Break]()
        self.wrong = set[Cell]()
        self._compare()
        self._find_strangers()
        self._find_unreferenced()
        self.wrong |= {found[1:4] for found in self.breaks}

    def doubted(self, cell: Cell) -> bool:
        """Return whether a record that cannot be read may belong to a cell."""
        return any(
            all(mine is None or mine == other for mine, other in zip(each, cell, strict=True))
            for each in self.unreadable()
        )

    def unreadable(self) -> Iterator[Cell]:
        yield from (cell_of(each) for each in self.usage if is_odd(each))
        yield from (cell_of(each) for each in self.bills if self._is_odd_bill(each))

    def _is_odd_bill(self, bill: Bill) -> bool:
        return is_odd(bill) or any(map(is_odd, lines_of(bill)))

    def sums(self) -> dict[Cell, tuple[Decimal | None, Decimal | None]]:
        """Return what each cell used, and what is billed less credit notes."""
        used, billed = defaultdict[Cell, list[Any]](list), defaultdict[Cell, list[Any]](list)
        for each in self.usage:
            used[cell_of(each)].append(said(each.amount))
        for bill in self.bills:
            billed[cell_of(bill)].append(_signed(bill, said(bill.total)))
        return {cell: (_total(used[cell]), _total(billed[cell])) for cell in {*used, *billed}}

    def verdict(self, cell: Cell, sums: tuple[Decimal | None, Decimal | None]) -> str:
        if self.doubted(cell):
            return "not proven"
        used, billed = (each or ZERO for each in sums)
        fees = self._fees(cell)
        if cell in self.wrong or billed - used != max(fees, ZERO):
            return "out of balance"
        return "balanced" if billed == used else "fees"

    def _fees(self, cell: Cell) -> Decimal:
        """Return what is billed in a cell for no usage."""
        fees = ZERO
        for each in self.bills:
            if cell_of(each) == cell and not is_odd(each):
                lines = [line.amount for line in each.lines if line.usage is not None]
                fees += _signed(each, each.total - sum(lines, ZERO)) or ZERO
        return fees

    def _find_unreferenced(self) -> None:
        for bill in self.bills:
            if is_odd(bill) or bill.partner not in self._known or bill.kind == "credit":
                continue
            lines = lines_of(bill)
            fees = [line.amount for line in lines if line.usage is None and not is_odd(line)]
            rest = bill.total - sum((said(line.amount) or ZERO for line in lines), ZERO)
            amount = sum(fees, ZERO if any(map(is_odd, lines)) else rest)
            if amount:
                self.breaks["unreferenced", *cell_of(bill), amount] += 1

    def _rows(self) -> dict[str, list[Row]]:
        rows = defaultdict[str, list[Row]](list)
        for used in self.usage:
            row = Row(
                used.id, cell_of(used), said(used.amount), said(used.quantity), None, is_odd(used)
            )
            rows[row.key].append(row)
        for bill in self.bills:
            for line in lines_of(bill):
                if isinstance(line.usage, str):
                    odd = is_odd(bill) or is_odd(line)
                    amount = _signed(bill, said(line.amount))
                    quantity = _signed(bill, said(line.quantity))
                    rows[line.usage].append(
                        Row(line.usage, cell_of(bill), amount, quantity, bill, odd)
                    )
        return rows

    def _compare(self) -> None:  # noqa: C901 - one pass over all pairs
        unbilled, unused = Counter[Any](), Counter[Any]()
        for key, rows in self._rows().items():
            pairs = defaultdict[Any, list[Row]](list)
            for row in rows:
                pairs[row.cell[2]].append(row)
            is_readable = not any(row.is_odd for row in rows)
            for pair in pairs.values() if is_readable else ():
                rule = self._judge(pair, pairs)
                used = [row for row in pair if row.bill is None]
                cell = min((used or pair), key=lambda row: row.cell).cell
                self.wrong |= {cell} if rule else set()
                if rule == "not_billed":
                    unbilled[*cell, self._new.get(key)] += used[0].amount
                elif rule == "not_used":
                    unused.update(
                        {(row.bill.id, *row.cell): row.amount for row in pair if row.bill}
                    )
                elif rule in {"different", "billed_twice"}:
                    self.breaks[rule, *cell, _difference(pair)] += 1
        for (*cell, _new), amount in unbilled.items():
            self.breaks["not_billed", *cell, -amount] += 1
        for (_bill, *cell), amount in unused.items():
            self.breaks["not_used", *cell, amount] += 1

    def _judge(self, pair: list[Row], pairs: dict[Any, list[Row]]) -> str | None:
        """Return the rule that finds a pair, `stranger` if only its partner is unknown."""
        used = [row for row in pair if row.bill is None]
        billed = [row for row in pair if row.bill is not None and not row.is_credit]
        difference = _difference(pair)
        if any(row.cell[0] not in self._known for row in pair):
            return "stranger"
        sides = {row.bill is None for each in pairs.values() for row in each if not row.is_credit}
        if not (used and billed):
            if len(sides) > 1:
                return "different"
            return "not_billed" if used else "not_used"
        if len(billed) > 1 and difference > 0:
            return "billed_twice"
        is_same = len({row.cell[0] for row in pair}) == 1
        quantity = sum(row.quantity for row in pair if row.bill is not None)
        if difference or not is_same or quantity != used[0].quantity:
            return "different"
        return None

    def _find_strangers(self) -> None:
        found = defaultdict[Any, list[Any]](list)
        records: list[Any] = [(each, "usage", said(each.amount)) for each in self.usage]
        records += [(each, "billing", _signed(each, said(each.total))) for each in self.bills]
        for each, side, amount in records:
            if said(each.partner) is not None and each.partner not in self._known:
                sign = -1 if side == "usage" else 1
                found[side, cell_of(each)].append(None if amount is None else sign * amount)
        for (_side, cell), amounts in found.items():
            self.breaks["unknown_partner", *cell, _total(amounts)] += 1


class MonthModel(Model):
    """The figures where lines name no usage: whole months of partners are compared."""

    def _is_odd_bill(self, bill: Bill) -> bool:
        lines = lines_of(bill)
        return is_odd(bill) or any(isinstance(line.quantity, Odd) for line in lines)

    def _fees(self, _cell: Cell) -> Decimal:
        return ZERO

    def _find_unreferenced(self) -> None:
        """Find nothing: no line names usage."""

    def _compare(self) -> None:
        for cell in {*map(cell_of, self.usage), *map(cell_of, self.bills)}:
            used = [each for each in self.usage if _is_of(each, cell)]
            bills = [each for each in self.bills if _is_of(each, cell)]
            if None in cell[:2] or not (used or bills):
                continue  # nobody knows whose it is
            if cell[0] in self._known:
                self._compare_month(cell, used, bills)
            else:
                self.wrong.add(cell)

    def _compare_month(self, cell: Cell, used: list[Used], bills: list[Bill]) -> None:
        amounts = {each.id: _signed(each, said(each.total)) or ZERO for each in bills}
        difference = sum(amounts.values(), ZERO) - (
            _total([said(each.amount) for each in used]) or ZERO
        )
        counted = [each for each in bills if each.kind != "credit"]
        if not used:
            for each in bills:
                self.breaks["not_used", *cell, amounts[each.id]] += 1
        elif not counted:
            self.breaks["not_billed", *cell, difference] += 1
        elif difference or _quantity(used) != _quantity(_billed_lines(bills)):
            self.breaks["different", *cell, difference] += 1


def _is_of(each: Used | Bill, cell: Cell) -> bool:
    """Return whether a record is of a cell: a blank currency is one, that of an object is none."""
    return cell_of(each) == cell and not isinstance(each.currency, Odd)


def _billed_lines(bills: Sequence[Bill]) -> list[Line]:
    return [
        Line(None, _signed(bill, said(line.quantity)), None)
        for bill in bills
        for line in lines_of(bill)
    ]


def _quantity(records: Sequence[Any]) -> Any:
    return _total([said(each.quantity) for each in records])


def lines_of(bill: Bill) -> list[Line]:
    return [] if isinstance(bill.lines, Odd) else bill.lines


def _signed(bill: Bill, amount: Any) -> Any:
    return -abs(amount) if bill.kind == "credit" and amount is not None else amount


def _total(amounts: Sequence[Any]) -> Decimal | None:
    known = [each for each in amounts if each is not None]
    return sum(known, ZERO) if known else None


def _difference(pair: Sequence[Row]) -> Decimal:
    return sum((row.amount if row.bill else -row.amount for row in pair), ZERO)

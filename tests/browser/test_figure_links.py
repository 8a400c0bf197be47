"""Every link from a figure of the report leads to rows that add up to that figure.

A figure is a count or a sum: of the summary, what a link with `data-sums` shows, or of a list, a
cell. The page itself reads the address of each link and selects the rows.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from pipelines.finance.report import read_figures_of_books, write_report
from sandbox.data.sizes import Sizes
from tests.browser.operator import open_chromium
from tests.examples.make import publish_seed
from tests.reconcile.books import MAPPING, bill, line, partners, publish, used
from tests.reconcile.months import ACCOUNTS
from tests.reconcile.own import LEDGER, METER, write
from tests.versions.homes import Record, Stores

SMALL = Sizes(10, 500, 120)
TERMS = MAPPING.replace(
    'counted_statuses = ["paid"]',
    'counted_statuses = ["paid", "open"]\npaid_statuses = ["paid"]\n'
    'due = "due"\nopen = "amountDue"',
)
OF_ALL = {"rows", "open", "months.open_breaks", "partners.open_breaks", "partners.partner"}
OF_ALL |= {"unused", "due.open", "due.overdue", "due.credited"}
CLAIMS = {"paid", "unpaid", "difference"}
ALL_TERMS = TERMS + ACCOUNTS + LEDGER + METER
# Returns what differs, and how many links of each kind there are.
COMPARE = """async () => {
  const wrong = [];
  const links = {};
  const rowsOf = async (href) => {
    const [name, query] = href.slice(2).split("?");
    const list = await Lists.load(name);
    const filters = Object.fromEntries(new URLSearchParams(query));
    return { name, list, rows: Lists.select(list.rows, filters, list.filters) };
  };
  const bare = (text) => text.replace(/[^0-9.\\u2212]/g, "").replace("\\u2212", "-");
  const equal = (one, other) => Amounts.units(one) === Amounts.units(other);
  const found = (kind, href, figure, rows, sum, isRight) => {
    links[kind] = (links[kind] ?? 0) + 1;
    if (!isRight) wrong.push([kind, href, figure, rows.length, sum]);
  };

  for (const link of document.querySelectorAll("#summary [data-find] a")) {
    const href = link.getAttribute("href");
    const { sums } = link.parentElement.dataset;
    const text = link.textContent.trim();
    const { rows } = await rowsOf(href);
    if (!sums) {
      const isName = /^([A-Z][a-z]{2} \\d{4}|B[0-9a-f]{12})$/.test(text) || !/\\d/.test(text);
      found("name", href, text, rows, null, isName && rows.length > 0);
      continue;
    }
    const number = String(rows.length);
    const counted = /^([\\d,]+):|\\(([\\d,]+)\\)$/.exec(text);
    const figure = counted ? text.replace(counted[0], "") : text;
    const isCount = !counted || (counted[1] ?? counted[2]).replace(",", "") === number;
    const sum = sums === "rows" ? number : Amounts.sum(rows.map((row) => row[sums]));
    const currencies = new Set(rows.map((row) => row.currency));
    const isOne = sums === "rows" || currencies.size === 1;
    const size = (value) => value.replace("-", "");
    // Of what may be claimed, the summary shows the size.
    const isSigned = figure.includes("\\u2212") || figure.includes("+");
    const isUnknown = figure.includes("not known") && !Amounts.units(sum);
    const isRight = isUnknown || equal(bare(figure), isSigned ? sum : size(sum));
    found(sums, href, text, rows, sum, isOne && isCount && isRight);
  }

  const AMOUNTS = ["used", "billed", "credited", "difference"];
  for (const name of Lists.names()) {
    const source = await Lists.load(name);
    for (const column of source.columns.filter((each) => each.link)) {
      for (const row of source.rows) {
        if (!(column.name in row)) continue; // only an opened bill has it
        const node = Cells.node(column, row, 2);
        if (node.tagName !== "A") continue;
        const href = node.getAttribute("href");
        const { name: target, list, rows } = await rowsOf(href);
        const kind = `${name}.${column.name}`;
        if (column.kind === "count") {
          found(kind, href, row[column.name], rows, rows.length, rows.length === row[column.name]);
          if ("overbilled" in row) {
            const parts = rows.map((each) => each.difference ?? "0");
            const more = Amounts.sum(parts.filter((each) => !each.startsWith("-")));
            const below = parts.filter((each) => each.startsWith("-"));
            const less = Amounts.sum(below.map((each) => each.slice(1)));
            found(kind, href, [row.overbilled, row.unbilled], rows, [more, less],
              equal(more, row.overbilled) && equal(less, row.unbilled));
          }
        } else if (target === "partner-months" && "used" in row) {
          // The row has the sums of its months, or its month those of its partners.
          const names = name === "partner-months" ? [] : AMOUNTS;
          const sums = names.map((each) => Amounts.sum(rows.map((other) => other[each])));
          found(kind, href, names.map((each) => row[each]), rows, sums,
            rows.length > 0 && sums.every((sum, place) => equal(sum, row[names[place]] ?? "0")));
        } else if (name === "due") {
          const of = { credited: "unused", paid: "paid", unpaid: "unpaid" }[column.name] ?? "open";
          const sum = Amounts.sum(rows.map((other) => other[of]));
          const isOne = new Set(rows.map((other) => other.partner_id)).size === 1;
          found(kind, href, row[column.name], rows, sum, isOne && equal(sum, row[column.name]));
        } else {
          const isEmpty = Boolean(list.left_out) || !Amounts.units(row.billed);
          found(kind, href, null, rows, null, rows.length > 0 || isEmpty);
        }
      }
    }
  }
  // Those of all partners are those of all bills: nobody is missing.
  const bills = (await Lists.load("bills")).rows;
  const due = Lists.names().includes("due") ? (await Lists.load("due")).rows : [];
  for (const [name, of] of [["open", "open"], ["credited", "unused"]]) {
    for (const currency of new Set(bills.map((row) => row.currency))) {
      const sumOf = (rows, column) => Amounts.sum(
        rows.filter((row) => row.currency === currency).map((row) => row[column]));
      const [sum, all] = [sumOf(due, name), sumOf(bills, of)];
      found("due", currency, sum, due, all, equal(sum, all));
    }
  }
  return [wrong, links];
}"""


def publish_hard(stores: Stores) -> None:
    """Own books of two kinds, two partners of one name, doubtful rows, notes that are overdue."""
    stores.configure()
    write(stores, "ledger/2026-09.csv", ["Bill,Partner,Posted on,Amount,Currency",
        "b1,first,2026-09-30,5.00,EUR", "b2,first,2026-09-30,7.25,EUR"])  # fmt: skip
    write(stores, "meter.csv", ["who,when,value,code", "first,2026-09-10,3.00,EUR"])
    names: list[Record] = [
        *partners(["first"]),
        {"id": "same", "name": "first Ltd", "externalId": "x"},
        {"id": "part", "name": "first", "externalId": "y"},
    ]
    usage = [used(f"u{each}") for each in range(5)]
    usage += [used(f"s{each}", "7.00", partner="same") for each in range(4)]
    usage += [used("p0", "1.00", partner="part"), used("d0", "9.00", currency="USD")]
    late: Record = {"status": "open", "due": "2026-10-15"}
    bills = [
        bill("b1", line("u0"), **late, amountDue="5.00"),
        bill("b2", line("u1", "6.00"), **late, amountDue="6.00"),
        bill("b3", line("u1", "6.00"), **late, partner="same", amountDue="2.00"),  # paid in part
        bill("n1", line(None, "2.00"), kind="credit", **late, amountDue="2.00"),
        bill("s1", line("s0", "7.00"), **late, partner="same", amountDue="7.00"),
        bill("d1", line("d0", "10.00"), **late, currency="USD", amountDue="0.00"),
        bill("e1", line(None, "4.00"), status="paid"),
        bill("x1", line("gone", "3.00"), partner="nobody"),
    ]
    publish(stores, mapping=ALL_TERMS, partners=names, usage=usage, billing=bills)


def publish_partial(stores: Stores) -> None:
    """Some breaks may only be usage that was not read."""
    publish_hard(stores)
    usage = [used("u0"), used("u1"), used("s0", "7.00", partner="same")]
    mapping = ALL_TERMS.replace("payable", "receivable")
    publish(stores, mapping=mapping, complete=False, usage=usage)


def of_seed(seed: int) -> Callable[[Stores], None]:
    return lambda stores: publish_seed(stores, seed, SMALL)


@pytest.mark.long
@pytest.mark.parametrize(
    "make",
    [
        publish_hard,
        publish_partial,
        of_seed(7),
        pytest.param(of_seed(11), marks=pytest.mark.slow),
        pytest.param(of_seed(23), marks=pytest.mark.slow),
    ],
    ids=["hard", "partial", "7", "11", "23"],
)
def test_every_figure_leads_to_rows_that_add_up_to_it(
    make: Callable[[Stores], None], tmp_path: Path
) -> None:
    stores = Stores.open(tmp_path / "home")
    make(stores)
    file = write_report(stores, read_figures_of_books(stores, with_details=True))
    with open_chromium() as browser:
        page = browser.new_page()
        page.goto(file.as_uri())
        expect(page.get_by_role("navigation")).to_be_visible()
        wrong: list[Any]
        wrong, links = page.evaluate(COMPARE)
    assert not wrong
    assert OF_ALL | (set() if make is publish_partial else CLAIMS) <= {*links}


# Of the columns of a list, those that are read first: they are there without scrolling sideways.
FIRST = {
    "Open breaks": ("Difference", "Age, days"),
    "Bills": ("To be paid", "Payment", "Due"),
    "Due by partner": ("To be paid", "Overdue", "In question", "Open credit notes"),
}


@pytest.mark.long
def test_the_first_columns_are_visible_on_a_small_screen(tmp_path: Path) -> None:
    stores = Stores.open(tmp_path / "home")
    publish_seed(stores, 7, SMALL)
    file = write_report(stores, read_figures_of_books(stores, with_details=True))
    with open_chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(file.as_uri())
        for name, columns in FIRST.items():
            page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
            table = page.locator("#tables table").first
            edge = page.locator("#tables .scroll").first.bounding_box()
            assert edge
            for column in columns:
                named = re.compile(f"^{column} {column}:")
                head = table.get_by_role("columnheader", name=named).bounding_box()
                assert head
                assert head["x"] + head["width"] <= edge["x"] + edge["width"], column

"""`make examples`: what an accountant gets, made of the sandbox's records.

The records, the clock and all names are the same each time. Digests are not: a workbook says when
it was written. There is no PDF, as it would need a browser.
"""

import json
import sys
import tempfile
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from pipelines.app.nightly import build_with_books
from pipelines.core.files import write_durably
from pipelines.core.text import quote_text
from pipelines.finance.books import make_books
from pipelines.finance.break_decisions import BreakDecision, record_decisions
from pipelines.finance.breaks import BreakFilter, read_breaks
from pipelines.finance.close import close_month
from pipelines.finance.proposals import accept
from pipelines.finance.report import read_figures_of_books, write_report
from pipelines.finance.signing import Signing
from pipelines.finance.statement import write_statements
from pipelines.finance.statement_sent import note_sent
from pipelines.metadata.tables import Decision
from sandbox.data.dataset import dataset
from sandbox.data.plant import plant
from sandbox.data.sizes import Sizes
from tests.reconcile.months import SERVICE
from tests.versions.homes import DAY, Reading, Stores, read

FOLDER: Final = Path(__file__).parents[2] / "examples"
SEED: Final = 7
SIZES: Final = Sizes(25, 2_500, 560)
KEYS: Final = {"partners": "partnerId", "usage": "usageId", "billing": "billingId"}
BEGIN: Final = datetime(2026, 11, 16, 2, tzinfo=UTC)
MONTH: Final = date(2026, 9, 1)
SENT: Final = BEGIN.date()  # the statement, by a person
TERMS: Final = """
[accepted_fees.support]
field = "lines[].description"
values = ["support"]
reason = "Flat fee for support, as in section 4 of the contract."

[accounts]
side = "payable"
accrued = "2190"
result = "5100"
correction = "5190"
rounding = "5900"
[accounts.names]
"2190" = "Accrued cost of usage"
"5100" = "Cost of usage"

[own.ledger]
against = "billing"
connection = "demo"
file = "ledger.csv"
[own.ledger.roles]
id = "bill"
partner = "partner"
period = "month"
amount = "amount"
currency = "currency"
"""
# Two bills are wrong in the ledger: it lacks one, and has another with an amount that is 9.00 more.
LEDGER: Final = """
COPY (
    SELECT rows.bill, rows.partner_id AS partner, strftime(rows.month, '%Y-%m') AS month,
        rows.billed + if(rows.place = 2, 9, 0) AS amount, rows.currency
    FROM (
        SELECT bills.*, row_number() OVER (
            PARTITION BY bills.month = DATE '{month}' AND bills.currency = 'EUR' ORDER BY bills.bill
        ) * (bills.month = DATE '{month}' AND bills.currency = 'EUR')::INTEGER AS place
        FROM finance.bills AS bills
        WHERE bills.set_apart IS NULL OR bills.set_apart = 'credit note'
    ) AS rows
    WHERE rows.place <> 1
    ORDER BY rows.bill
) TO {file}
"""
PERSON: Final = "Carla Example"
ASSIGNED: Final = "Waits for what the contract says; then the partner is asked."
RESOLVED: Final = (
    "Too small to ask for; written off by Ann Example, who signs the month, on 16 November."
)
# Of the partners with breaks of usage and billing, the one with the most records.
MOST_ASKED: Final = """
SELECT breaks.partner FROM reconciliation.breaks AS breaks
JOIN reconciliation.partners AS known USING (connection, partner)
WHERE breaks.month = DATE '{}' AND breaks.state <> 'resolved' AND breaks.own_source IS NULL
GROUP BY breaks.partner ORDER BY sum(breaks.rows) DESC, breaks.partner LIMIT 1
"""


class Example(Stores):
    """A home in which a person with a name decides, whoever makes the examples."""

    def decision(self, kind: str, subject: str, reason: str) -> Decision:
        """Return a decision of that person."""
        decision = super().decision(kind, subject, reason)
        decision.person = PERSON
        return decision


def make(folder: Path) -> None:
    """Write the examples into a folder, in place of those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="partner-sync-") as home:
        stores = Example.open(Path(home) / "home")
        publish_seed(stores, SEED, SIZES)
        _decide(stores)
        said = Signing("Agreed on 16 November.")
        close_month(stores, MONTH, "Ann Example", "Bob Example", said)
        make_books(stores)
        copy = stores.home.closes / f"{MONTH:%Y-%m}" / "001"
        ((partner,),) = stores.rows(MOST_ASKED.format(MONTH))
        (row,) = write_statements(stores, MONTH, partner, with_pdf=False)
        to = "billing@partner.example, the billing department of the partner"
        note_sent(stores, (MONTH, partner, ""), row["number"], to, SENT)
        page = write_report(stores, read_figures_of_books(stores, with_details=True))
        made = {
            "working-paper.xlsx": copy / f"{MONTH:%Y-%m}.xlsx",
            "journal.csv": copy / "journal.csv",
            "report.html": page,
            **{f"statement{Path(file).suffix}": Path(file) for file in row["files"]},
        }
        for name, file in made.items():
            (folder / name).write_bytes(file.read_bytes())


def publish_seed(stores: Stores, seed: int, sizes: Sizes) -> None:
    """Publish lists of the sandbox, with planted errors, and their books."""
    stores.clock.now = BEGIN
    stores.configure("demo", **SERVICE)
    made = dataset(seed, sizes, plant(seed, sizes))
    for minutes, (stream, key) in enumerate(KEYS.items()):
        rows = getattr(made, stream)
        # A reading begins a day later: all are of one night.
        stores.clock.now = BEGIN - DAY + timedelta(minutes=minutes)
        records = [json.loads(record) for record in rows.rows(0, rows.count)]
        read(stores, Reading(records, stream, connection="demo", key=key, page_size=500))
    build_with_books(stores)
    accept(stores)
    make_books(stores)
    ledger = quote_text(str(stores.home.root / "ledger.csv"))
    stores.rows(LEDGER.format(month=MONTH, file=ledger))
    # In the morning a person writes the terms and accepts them, and the ledger is read.
    stores.clock.now = BEGIN + timedelta(hours=7)
    file = stores.home.mapping_file
    write_durably(file, file.read_bytes() + TERMS.encode())
    accept(stores)
    make_books(stores)


def _decide(stores: Stores) -> None:
    """Assign the first open breaks of the month to people, resolve the last one."""
    rows = read_breaks(stores, BreakFilter(month=f"{MONTH:%Y-%m}")).to_pylist()
    ours = [row for row in rows if row["own_source"] is None and row["state"] == "open"]
    decided = [
        (ours[0], BreakDecision("assign", ASSIGNED, PERSON)),
        (ours[1], BreakDecision("assign", ASSIGNED, "Dan Example")),
        (ours[-1], BreakDecision("resolve", RESOLVED)),
    ]
    record_decisions(stores, [row | decision._asdict() for row, decision in decided])
    make_books(stores)


if __name__ == "__main__":
    make(FOLDER)
    for file in sorted(FOLDER.iterdir()):
        sys.stdout.write(f"examples/{file.name}\n")

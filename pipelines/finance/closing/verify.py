"""Verify files, figures and journal of the copy of a month. Needs Python 3.10 and duckdb."""

import sys

if __name__ == "__main__":
    del sys.path[0]  # the folder of the copy: a file in it may be named like a module

import argparse
import hashlib
import json
from collections import Counter, abc
from decimal import Decimal
from pathlib import Path

import duckdb

PREPARE = "CREATE SCHEMA copied; CREATE MACRO part(x, c) AS coalesce(sum(x) FILTER (c), 0)"
KEY = "SELECT connection, partner, currency"
# Unbilled usage of partners. `unposted`: changes of earlier months that are open, or closed again.
BALANCES = f"""{KEY}, part(before, true) AS opening, part(not_posted, true) AS unposted,
    part(correction, true) AS corrections, part(usage, true) AS used, count(used_row) AS used_rows,
    part(bill, apart IS NULL) AS billed, part(bill, apart = 'credit note') AS credited,
    part(bill, apart <> 'credit note') AS not_counted, count(open_break) AS open_breaks,
    opening + unposted + corrections + used - billed - credited AS closing
    FROM ({KEY}, if(side = 'usage', difference, -difference) AS correction FROM copied.corrections
        UNION ALL BY NAME {KEY}, opening AS before, unposted AS not_posted FROM copied.opening
        UNION ALL BY NAME {KEY}, amount AS usage, 1 AS used_row FROM copied.used
        UNION ALL BY NAME {KEY}, amount AS bill, apart FROM copied.billed
        UNION ALL BY NAME {KEY}, break_id AS open_break FROM copied.breaks
        WHERE state <> 'resolved' AND uncertain IS NULL AND own_source IS NULL) GROUP BY ALL"""
ROLLFORWARD = f"SELECT * EXCLUDE (used_rows, not_counted, open_breaks) FROM ({BALANCES})"
SUMS = {"summary": "used_amount, billed_amount, credited_amount, not_counted_amount, difference",
    "rollforward": "opening, unposted, corrections, used, billed, credited, closing",
    "matches": "used_amount, billed_amount, credited_amount, difference", "decisions": "difference",
    "opening": "opening, unposted", "breaks": "difference, open_difference", "corrections":
    "difference", "own_totals": "own_amount, service_amount, difference"}  # fmt: skip
LINES = """SELECT DISTINCT close, kind, if(amount IS NULL, 'rounding', if(source = close, 'sum',
    'source')) AS is_of, account, period, date, (sign(amount) * if(debit > '', 1, -1))::INT AS side
    FROM entries WHERE kind <> 'cancellation' AND (debit > '' OR credit > '')"""
SOURCES = "SELECT kind, source, currency, amount FROM entries WHERE source <> close AND kind"
FIGURES = {  # as they are stored, and follow from rows: three names, then amounts and numbers
    "roll-forward": ("FROM rollforward", ROLLFORWARD),
    "summary": (f"""{KEY}, open_breaks, used_rows, ifnull(COLUMNS({SUMS["summary"].split(", ")}), 0)
        FROM summary""", f"""{KEY}, open_breaks, used_rows, used, billed, credited, not_counted,
        billed + credited - used FROM ({BALANCES})"""),
    "open items": (f"{KEY}, closing FROM rollforward",
        f"{KEY}, sum(amount) FROM open_items WHERE reason <> 'no month' GROUP BY ALL"),
    "break": ("""SELECT break_id, rule, currency, rows, ifnull(COLUMNS('^(used|bil|diff)'), 0)
        FROM breaks WHERE gone_at IS NULL""", """SELECT break_id, rule, currency, count(*),
        part(amount, side = 'usage') AS usage, part(amount, side = 'billing') AS bill,
        if(rule = 'disappeared', 0, bill + if(min(own_source) > '', usage
        - part(amount, side = 'own'), -usage)) FROM break_rows GROUP BY 1, 2, 3"""),
    "own sum": ("SELECT source, month, currency, own_rows, own_amount FROM own_totals", """FROM own
        SELECT source, month, currency, count(*), sum(amount) WHERE unread IS NULL GROUP BY ALL"""),
    "journal line": ("FROM journal", """SELECT * EXCLUDE (month, minor_unit, amount, left_out)
        FROM entries WHERE left_out IS NULL AND (debit > '' OR credit > '')"""),
    "journal source": (f"{SOURCES} <> 'cancellation'", f"""{SOURCES} = 'accrual'
        AND ifnull(month, '') <> period UNION ALL SELECT 'accrual', break_id, currency, -difference
        FROM breaks WHERE state <> 'resolved' UNION ALL SELECT 'reversal', source, currency, -amount
        FROM entries WHERE source <> close AND kind = 'accrual' AND left_out IS NULL
        UNION ALL SELECT 'correction', concat(side, ' ', id, ' of ', strftime(month, '%Y-%m')),
        currency, difference FROM corrections"""),
    "journal entry": ("SELECT 1 LIMIT 0", """SELECT entry, kind, currency, sum(amount),
        sum(ifnull(debit, '-' || credit)::DECIMAL(38, 4)), count(*) FILTER (
            2 * abs(abs(amount) - coalesce(debit, credit, '0')::DECIMAL(38, 4)) > minor_unit)
        FROM entries WHERE left_out IS NULL GROUP BY ALL""")}  # fmt: skip


def read_sums(db: duckdb.DuckDBPyConnection, folder: Path) -> dict[str, list[dict[str, object]]]:
    """Create a view of each table of a copy; return their numbers of rows, and sums as text."""
    db.execute(f"{PREPARE}; USE copied")
    sums = {}
    for file in sorted(folder.glob("*.parquet")):
        view = db.read_parquet(str(file)).create_view(file.stem)
        texts = f"sum(COLUMNS({SUMS.get(file.stem, 'amount').split(', ')}))::VARCHAR"
        found = view.aggregate(f"currency, count(*) AS rows, {texts}", "currency").order("currency")
        sums[file.stem] = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    return sums


def find_problems(folder: Path, signed: str) -> abc.Iterator[str]:
    """Yield what is wrong with the copy in a folder, whose manifest should have a SHA-256."""
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    if signed not in {"", found["manifest.json"]}:
        yield "manifest.json is not the one that was signed"
    manifest = json.loads((folder / "manifest.json").read_bytes())
    files = {**manifest["sha256"], "manifest.json": found["manifest.json"]}
    for name in sorted({name for name, _ in files.items() ^ found.items()}):
        yield f"{name} is missing, was changed, or was added"
    with duckdb.connect() as db:
        if (sums := read_sums(db, folder)) != manifest["sums"]:
            yield "manifest.json has other numbers of rows, or other sums, than the tables"
        has = {"journal": "entries" in sums, "own": "own" in sums, "open": "open_items" in sums}
        if has["journal"]:
            names = dict.fromkeys(db.sql(FIGURES["journal line"][1]).columns, "VARCHAR")
            db.read_csv(str(folder / "journal.csv"), columns=names, header=True, na_values="",
                auto_detect=False, allow_quoted_nulls=False).create_view("journal")  # fmt: skip
            lines = {*db.execute(LINES).fetchall()} - {tuple(row) for row in manifest["ledger"]}
            yield from (f"a journal line does not follow from [accounts]: {row}" for row in lines)
        for name in (name for name in FIGURES if has.get(name.split()[0], True)):
            stored, follows = (Counter(db.execute(query).fetchall()) for query in FIGURES[name])
            wrong = [row for row in (stored - follows) + (follows - stored) if any(row[3:])]
            yield from (f"{name} of {row[:3]} does not follow from the rows" for row in wrong)
    before = json.loads((folder / "previous.json").read_bytes())["sums"]["rollforward"]
    closing = {(row["currency"], Decimal(row["closing"])) for row in before}
    opening = {(row["currency"], Decimal(row["opening"])) for row in manifest["sums"]["opening"]}
    if any(amount for _currency, amount in opening ^ closing):
        yield "the opening balances are not the closing balances in previous.json"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--manifest", default="", help="SHA-256 of the signed manifest.json")
    problems = list[str]()
    try:
        problems += find_problems(Path(__file__).resolve().parent, parser.parse_args().manifest)
    except (OSError, ValueError, KeyError, duckdb.Error) as error:
        problems.append(f"the copy cannot be read: {error!r}")
    print("\n".join(problems) or "intact: every file, sum and balance is as it was signed")  # noqa: T201
    sys.exit(bool(problems))

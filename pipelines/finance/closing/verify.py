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
# Unbilled usage of partners. `unposted`: changes of earlier months that are open, or closed again.
KEY = "SELECT connection, partner, currency"
UNION = f"UNION ALL BY NAME {KEY}"
BALANCES = f"""{KEY}, part(o, true) AS opening, part(n, true) AS unposted, part(c, true) AS
    corrections, part(u, true) AS used, part(b, apart IS NULL) AS billed, part(b, apart =
    'credit note') AS credited, part(b, apart <> 'credit note') AS not_counted, count(k) AS
    open_breaks, count(r) AS used_rows, opening + unposted + corrections + used - billed - credited
    AS closing FROM ({KEY}, opening AS o, unposted AS n FROM copied.opening {UNION}, if(side =
    'usage', difference, -difference) AS c FROM copied.corrections {UNION}, 1 AS r, amount AS u FROM
    copied.used {UNION}, apart, amount AS b FROM copied.billed {UNION}, 1 AS k FROM copied.breaks
    WHERE state <> 'resolved' AND uncertain IS NULL AND own_source IS NULL) GROUP BY ALL"""
ROLLFORWARD = f"SELECT * EXCLUDE (used_rows, not_counted, open_breaks) FROM ({BALANCES})"
SUMS = {"summary": "used_amount, billed_amount, credited_amount, not_counted_amount, difference",
    "rollforward": "opening, unposted, corrections, used, billed, credited, closing",
    "matches": "used_amount, billed_amount, credited_amount, difference", "decisions": "difference",
    "opening": "opening, unposted", "breaks": "difference, open_difference", "corrections":
    "difference", "own_totals": "own_amount, service_amount, difference"}  # fmt: skip
# Lines of entries: kind, what the line has, account, period, date, side of a positive amount.
LINES = """FROM entries SELECT DISTINCT close, kind, if(amount IS NULL, 'rounding', if(source =
    close, 'sum', 'source')), account, period, date, (sign(amount) * if(debit > '', 1, -1))::INT
    WHERE kind <> 'cancellation' AND (debit > '' OR credit > '')"""
# Figures as they are stored, and as they follow from rows: three names, then amounts and numbers.
FIGURES = {
    "roll-forward": ("FROM rollforward", ROLLFORWARD),
    "summary": (f"""{KEY}, open_breaks, used_rows, ifnull(COLUMNS({SUMS["summary"].split(", ")}),
        0) FROM summary""", f"""{KEY}, open_breaks, used_rows, used, billed, credited, not_counted,
        billed + credited - used FROM ({BALANCES})"""),
    "open items": (f"{KEY}, closing FROM rollforward", f"""{KEY}, sum(amount) FROM open_items WHERE
        reason <> 'no month' GROUP BY ALL"""),
    "break": ("""SELECT break_id, rule, currency, rows, ifnull(COLUMNS('^(used|bil|diff)'), 0) FROM
        breaks WHERE gone_at IS NULL""", """SELECT break_id, rule, currency, count(*), part(amount,
        side = 'usage') AS u, part(amount, side = 'billing') AS b, if(rule = 'disappeared', 0, b +
        if(min(own_source) > '', u - part(amount, side = 'own'), -u)) FROM break_rows
        GROUP BY 1, 2, 3"""),
    "own sum": ("FROM own_totals SELECT source, month, currency, own_rows, own_amount", """FROM own
        SELECT source, month, currency, count(*), sum(amount) WHERE unread IS NULL GROUP BY ALL"""),
    "journal line": ("FROM journal", """FROM entries SELECT * EXCLUDE (month, minor_unit, amount,
        left_out) WHERE left_out IS NULL AND (debit > '' OR credit > '')"""),
    "journal source": ("""FROM entries SELECT kind, source, currency, amount WHERE source <> close
        AND kind <> 'cancellation'""", """FROM breaks SELECT 'accrual', break_id, currency,
        -difference WHERE state <> 'resolved' UNION ALL FROM entries SELECT kind, source, currency,
        amount WHERE kind = 'accrual' AND source <> close AND ifnull(month, '') <> period UNION ALL
        FROM entries SELECT 'reversal', source, currency, -amount WHERE kind = 'accrual' AND
        left_out IS NULL AND source <> close UNION ALL FROM corrections SELECT 'correction',
        concat(side, ' ', id, ' of ', strftime(month, '%Y-%m')), currency, difference"""),
    "journal entry": ("SELECT 1 LIMIT 0", """FROM entries SELECT entry, kind, currency,
        sum(amount), sum(ifnull(debit, '-' || credit)::DECIMAL(38,4)), count(*) FILTER (2 *
        abs(abs(amount) - coalesce(debit, credit, '0')::DECIMAL(38,4)) > minor_unit) WHERE left_out
        IS NULL GROUP BY ALL""")}  # fmt: skip


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

"""What tables, views and columns mean: one text each, written into every version as comments.

A column is looked up as `table.column`, then by its name, which means the same in every table.
Names that stand before one colon share its text.
"""

from typing import Final

LINES: Final = """
history: Every version of every record of list {stream}, with the time in which it held.
history.array: Items of array {array} of list {stream}, for every version of each record.
current: Records of list {stream} as they were read last.
current.array: Items of array {array} of list {stream}, as they were read last.
as_of: Rows of list {stream} as they were known at a moment.
field: Field {column} of the record.
__offset: Field {column} of the record: UTC offset of the time, as it was sent.
__count: Field {column} of the record: number of items. NULL: the record has no such array.
_connection: Connection that read the record.
_key: What identifies the record: its primary key, or a digest of its content.
_parent_key: `_key` of the record that the item belongs to.
_index: Place of the item in its array, from 0.
_parent_index: `_index` of the item that this item belongs to.
_digest: First 8 bytes of the SHA-256 of the record as it was sent.
_valid_from: End of the scan that brought this version of the record.
_valid_to: End of the scan that ended this version. NULL: it holds.
_end_reason: Why the version ended: changed or deleted.
_scan_id: Scan that brought this version; see meta.requests.
_extra: What fits no column, as JSON; numbers as text, exactly as sent.
connection stream: Connection, and list, that were read.
scan_id: The scan; `_scan_id` of the rows that it brought.
page _page: Number of the request in the scan file, from 1; see meta.requests.
row _row: Place of the record in that page, from 0.
key primary_key: Primary key: field that identifies a record. NULL: its whole content does.
rows: Records of the list, each counted once.
requests: Requests sent, refused ones too.
started_at ended_at: When it began, and ended. NULL: it runs, or its process was killed.
code: Kind of finding; docs/failures.md explains each.
severity: info, warning or error.
subject: What it is about, such as a column, a scan or a version. Empty: the whole stream.
message: What happened and what it means for the data.
remedy: Command that fixes it, or what to do about it.
blocks: Whether data waits for a person.
reason: Why. Empty for a complete scan.
meta.requests: Every request of each scan here. Rows name theirs by `_scan_id` and `_page`.
purpose: Why it was sent: page, head, length, behind; stop is no request.
requested_offset requested_limit: Offset, and page size, that was asked for.
requests.status: HTTP status. NULL: no answer.
sent_at received_at: When the request was sent, and when the answer was complete.
request_id: The service's own identifier of the request.
requests.rows: Records of the page that were loaded from it.
rows_conflicting: Records of the page that went to quarantine as conflicts.
bytes: Size of the answer's body. NULL: there is none.
error: Why the request has no page. NULL: it has one.
meta.load_findings: What each load had to say, such as new columns: several rows per scan, or none.
meta.findings: What needs attention, as of this build. `partner-sync status` shows the live list.
first_seen last_seen: When it was found first, and last.
notified_at: When people were told of it last. NULL: they were not, or it is over.
cleared_at: When it was over. NULL: it holds.
meta.runs: Every sync as of this build.
run_id: The run.
trigger: What started it: command, schedule or backfill.
scheduled_at: Tick of the schedule. NULL: started by a person.
outcome: complete, partial, failed or interrupted. NULL: as ended_at.
rate_limited: Requests answered with status 429.
meta.decisions: What people decided, with name and reason, as of this build.
number: Number of the version, which is part of its file's name, or of the decision.
decided_at person: When it was decided, and who decided it.
decisions.kind: approve, reject, rollback, accept_identity, erase or erased (to its end).
details: Further values, as JSON.
meta.versions: Versions of the warehouse, as of this build; the last one is this version itself.
versions.status: building (this version itself), published, checkpoint or deleted.
base: Version that it was built from. NULL: from scans alone.
created_at note: When its build began, and why it was built.
meta.loads: Every load in its order: the proof of the scan and what changed, in rows.
meta.completeness: What is proven of each scan that this version holds: one row per scan.
day: UTC date on which the scan began.
complete: Whether every row that existed throughout the scan is present.
method: What the proof rests on: one_page, overlapping_pages or counted.
repeated: Copies of records that were read again and set aside.
not_seen: Rows that the list had beyond those read. NULL: not known.
sentence: The proof in words.
valid_time: Time of the changes: `_valid_from` and `_valid_to` of the rows.
new: Rows that were new or came back.
changed: Rows of which a new version began.
deleted: Rows that the list did not have any more.
unchanged: Rows that stayed as they were.
quarantined: Records that went to quarantine.records.
meta.freshness: How fresh the rows of each list are: one row per connection and stream.
last_scan_id last_scan_ended_at: Newest scan that this version holds, and its end.
last_scan_complete: Whether that scan is complete. If not, some rows may be older.
last_complete_scan_id: Newest complete scan; `rows` are its records. NULL: none is complete.
last_complete_at: When it ended: the rows are proven complete for this moment.
age_minutes: Minutes from last_complete_at until now, the time of your query.
meta.columns: Every column of data, its type and the field of the record that it holds.
table_name column_name: Where it is; no column: the field had no value yet.
part: What of the field it holds: value, offset (of a time), count (of a list), none.
type: Type of the column.
path steps: The field in the record, as a JSON path, and as a JSON array.
digits: Digits before the decimal point.
position: Order of the columns.
quarantine.records: Records that no table can hold, with the reason.
records.key: Its primary key. NULL: it cannot be read.
raw: The record as it was sent.
reconciliation.used: Usage as reconciliation sees it: one row per record, columns by their role.
reconciliation.billed: Bills, one row per line; `#rest` is what the lines do not add up to.
reconciliation.bills: Bills, one row each.
reconciliation.currencies: Smallest amount of each currency that has not two decimals.
minor_unit: Smallest amount.
reconciliation.partners: The list of partners.
reconciliation.matches: Usage and bills side by side, where they are not plainly equal.
reconciliation.break_rows: Records that each break found by this build is about.
reconciliation.breaks: What is wrong, since when, how bad, and what people decided.
reconciliation.ageing: Unresolved breaks by age; uncertain ones are left out.
reconciliation.summary: Used and billed by partner, month and currency, with a verdict.
reconciliation.rollforward: What is used and not yet billed, from month to month.
reconciliation.restatements: Records whose amount or quantity changed.
reconciliation.late_arrivals: How late usage is recorded, by month.
reconciliation.gaps: Months without usage or bills between months with some.
reconciliation.external_ids: Partners with their external ids and what is unclear about them.
reconciliation.closes: Months that were closed, and whether anything in them changed since.
reconciliation.corrections: Changes of closed months: each is posted once, to an open month.
reconciliation.rules: Which rules and tables were evaluated; the others are empty, and why.
reconciliation.basis: What this reconciliation rests on.
rule: Rule that found it, or table.
break_id: Identifier of the break, the same in every version.
rules.question: What it answers.
evaluated: Whether it could be evaluated.
rules.reason: Why it could not be evaluated.
as_of: End of the newest scan.
match_by: How both sides are matched: usage (lines refer to records) or month.
time_zone: Time zone in which months begin.
grace_days: Days after a month in which its bills may still come.
digest: Digest of mapping, decisions and closes.
id: Identifier of the record; of a bill's line, bill#line.
bill: Identifier of the bill.
billed.number: Number of the bill that people use.
partner: Identifier of the partner.
partner_name partners.name: Name of the partner.
organization: Organization that the record names.
month: First day of the month that the record is of.
used.day: Date of the record in the time zone of the mapping.
currency: ISO 4217 code. Amounts of two currencies are never added.
plan: Plan or product.
metric: What is counted.
quantity: Quantity.
price: Price of one unit.
amount: Amount; negative for credit notes. Of a bill: its total.
recorded_at: When usage was recorded.
updated_at: When the record was changed last.
issued_at: When the bill was issued.
apart: Why the bill does not count as billed: its status, or credit note. NULL: it counts.
used.key billed.key: What rows of both sides that belong together share.
reference: Identifier of the usage that the line bills. NULL: none, such as a fee.
matches.key: Usage record, or partner, month and currency.
billed_partner: Partner of the bill.
used_rows: Records of usage.
billed_rows: Lines of bills that count.
used_quantity billed_quantity: Sum of the quantities of each side.
used_amount: Sum of the usage's amounts. NULL: there is none.
billed_amount: Sum of the bills that count. NULL: there is none.
credited_amount: Sum of the credit notes, negative.
not_counted_amount: Sum of bills that do not count: void, draft, cancelled.
bills: Bills that count.
fees: Billed on lines without a reference to usage.
tolerated: Sum of the differences that the tolerance allows.
difference: Billed and credited less used.
breaks.difference break_rows.difference: Billed less used.
rollforward.difference: Closing less the sum of today's records: 0. NULL: not the newest month.
restatements.difference: New amount less old amount.
matches.status: balanced, within tolerance, tentative, or what is wrong.
verdict: balanced, within tolerance, tentative (bills may still come) or out of balance.
open_breaks: Unresolved breaks; uncertain ones are left out.
breaks.severity: low, medium or high: by the share of what was billed in that month, then by age.
breaks.subject break_rows.subject: Record, bill or group that the break is about.
cause: Likely cause.
breaks.rows: Records that the break is about.
breaks.first_seen breaks.last_seen: As of when it was found first, and last.
gone_at: As of when it was not found any more. NULL: it still is.
returned_at: As of when it was found again after it was gone.
age_days: Days since it was found first.
state: open, assigned or resolved.
owner: Person that it is assigned to.
resolved_by: Person that resolved it, or evidence: it is not found any more.
breaks.reason: Reason of the last decision.
uncertain: Why it may be none: a list is not proven complete. It is in no total then.
side: usage or billing.
days: Age in days: 0-1, 2-7, 8-30 or >30.
ageing.breaks: Number of breaks.
opening: Unbilled at the begin of the month.
rated: Usage of the month as it was read first.
late: Usage of earlier months that was recorded in this one.
restated: Usage that changed or went away, new less old.
billed: Bills as they were read first.
credited: Credit notes as they were read first, negative.
adjusted: Bills that changed or went away, new less old.
closing: opening + rated + late + restated - billed - credited - adjusted.
closes.number corrections.number: Number of the close: its copy is closes/<month>/<number>.
closes.state: closed, outdated (records changed since) or reopened.
preparer reviewer: Who prepared the close, and who reviewed it.
closed_at: When the month was closed.
closes.version: Version that was published then, of which the copy is.
changed_records: Records that are not as they were signed off.
net_difference: What they are worth more or less now, by side and currency. NULL: nothing.
corrections.amount_before: Amount as signed off, with what was posted before. NULL: a new record.
amount_now: Amount when it was posted. NULL: gone, or it does not count any more.
corrections.difference: What is posted: amount_now less amount_before.
posted_to: Month that takes the difference: the first one after it that was open.
seen_at: As of when the difference was found.
amount_before amount_after: Amount before and after the change.
quantity_before quantity_after: Quantity before and after the change.
changed_at: End of the scan that showed the change.
after_month: Whether the month was over by then.
late_rows: Records that were recorded after their month was over.
lag_p50 lag_p95 lag_p99 lag_max: Days from use to record, for 50, 95, 99 and 100 % of the records.
suggested_grace_days: Days after the month at which 99 % of its records were there.
first_month last_month: First and last month of the gap; of a partner, the last with usage.
months: Months in the gap.
external_id: Identifier of the partner elsewhere.
external_id_before: The one before it.
finding: blank, duplicate or changed. NULL: nothing is unclear.
finance.names: Names of partners.
finance.partner_months: Used and billed by partner, month and currency.
finance.month_totals: The same by month and currency.
finance.open_breaks: Breaks that nobody has resolved; uncertain ones too.
finance.partners: Partners with their external ids.
finance.unbilled_usage: Usage that is on no bill.
finance.bills: Bills, those that are set apart too.
finance.changes: Records whose amount or quantity changed.
finance.balances: What is used and not yet billed, from month to month.
finance.corrections: What changed in closed months, and the month that takes it.
finance.partner: Name of the partner; its identifier where the list has none.
partner_id: Identifier of the partner.
used: Sum of the usage.
finance.billed month_totals.billed bills.billed: Sum of the bills that count.
finance.credited: Sum of the credit notes, negative.
partners: Partners with usage or bills in the month.
partners_out_of_balance: Those of which usage and bills differ.
is_due: Whether the month is over, so that a bill is due.
usage: Identifier of the usage record, or of the group that is matched.
usage_lines: Lines that refer to usage.
set_apart: Why the bill does not count as billed. NULL: it counts.
"""
TEXTS: Final = {
    key: text
    for keys, _, text in (line.partition(": ") for line in LINES.splitlines())
    for key in keys.split()
}

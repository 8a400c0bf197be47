"""Here: finance: books of a version of the warehouse, and what people do with them.

Not here: reading, loading and publishing, which know nothing of it. `finance.MODULE` is imported
when it is first used, as in `app`.

- Mapping: `mapping.py` and `own_mapping.py` read it, `proposals.py` proposes one.
- Books: `books.py` makes them with `reconcile/`, of what `inputs.py` reads; `books_state.py` says
  whether they are outdated, `earlier_books.py` what of earlier ones stays, `remembered.py` what is
  remembered of them. `own_books.py` and `own_check.py` look at own books of a home.
- Breaks: `breaks.py` lists them in the order of `materiality.py`, `break_decisions.py` and
  `decisions_file.py` take decisions. `unread.py` and `doubt.py` say what is not known.
- Closes: `close.py` and `freeze.py`, if `close_refusals.py` and `signing.py` allow it; `closing/`
  writes the copy. Another user runs `approve.py`; `approvals.py` takes that over from `inbox.py` or
  `database_approvals.py`, unless `late_postings.py` refuses.
- Pages: `report.py` with `reports/`, `statement.py` with `statements/`; `statement_sent.py` notes
  what was sent.
- Queries: `reconciled.py` opens books with their version, for `sql.py` and others.
  `trace_figure.py` adds a figure up again.
"""

from typing import TYPE_CHECKING

from pipelines.core.lazy import import_on_use

if TYPE_CHECKING:  # every module that the command line uses
    from pipelines.finance import approvals as approvals
    from pipelines.finance import approve as approve
    from pipelines.finance import books as books
    from pipelines.finance import break_decisions as break_decisions
    from pipelines.finance import breaks as breaks
    from pipelines.finance import close as close
    from pipelines.finance import close_refusals as close_refusals
    from pipelines.finance import decisions_file as decisions_file
    from pipelines.finance import materiality as materiality
    from pipelines.finance import own_books as own_books
    from pipelines.finance import own_check as own_check
    from pipelines.finance import proposals as proposals
    from pipelines.finance import report as report
    from pipelines.finance import signing as signing
    from pipelines.finance import sql as sql
    from pipelines.finance import statement as statement
    from pipelines.finance import statement_sent as statement_sent
    from pipelines.finance import trace_figure as trace_figure

__getattr__ = import_on_use(__name__)

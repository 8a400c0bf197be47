"""Here: the wing of finance: books of a version of the warehouse, and what people do with them.

Not here: reading, loading and publishing, which know nothing of it. `finance.MODULE` is imported
when it is first used, as in `app`.
"""

from typing import TYPE_CHECKING

from pipelines.core.lazy import import_on_use

if TYPE_CHECKING:  # every module that the command line uses
    from pipelines.finance import approvals as approvals
    from pipelines.finance import approve as approve
    from pipelines.finance import books as books
    from pipelines.finance import breaks as breaks
    from pipelines.finance import close as close
    from pipelines.finance import close_refusals as close_refusals
    from pipelines.finance import materiality as materiality
    from pipelines.finance import own_books as own_books
    from pipelines.finance import own_check as own_check
    from pipelines.finance import proposals as proposals
    from pipelines.finance import report as report
    from pipelines.finance import signing as signing
    from pipelines.finance import sql as sql
    from pipelines.finance import statement as statement
    from pipelines.finance import trace_figure as trace_figure

__getattr__ = import_on_use(__name__)

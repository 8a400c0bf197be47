"""Here: what the command line and Dagster do, in steps that both call.

Not here: options and tables that are printed (cli), and finance.

`app.MODULE` is imported when it is first used. So the help loads no database, and no command loads
more than it needs.
"""

from typing import TYPE_CHECKING

from pipelines.core.lazy import import_on_use

if TYPE_CHECKING:  # every module that the command line uses
    from pipelines.app import catalog as catalog
    from pipelines.app import checkup as checkup
    from pipelines.app import connect as connect
    from pipelines.app import demo as demo
    from pipelines.app import discover as discover
    from pipelines.app import export as export
    from pipelines.app import format_numbers as format_numbers
    from pipelines.app import held_scans as held_scans
    from pipelines.app import maintenance as maintenance
    from pipelines.app import nightly as nightly
    from pipelines.app import notify as notify
    from pipelines.app import plan as plan
    from pipelines.app import pull as pull
    from pipelines.app import read as read
    from pipelines.app import results as results
    from pipelines.app import session as session
    from pipelines.app import trace as trace

__getattr__ = import_on_use(__name__)

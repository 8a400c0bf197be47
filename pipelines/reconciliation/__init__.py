"""Rules of reconciliation, one file each.

To add one: a new file here that declares one `Rule` with examples that hold and that break, and a
line in docs/reconciliation.md. The tables, the list `reconciliation.rules` and the tests derive
from `RULES`.
"""

from pipelines.reconciliation.base import Example, Rule, Severity, describe, evaluate
from pipelines.shelf import members

__all__ = ["RULES", "Example", "Rule", "Severity", "describe", "evaluate"]

RULES = members(__name__, __path__, Rule)

"""Here: what a statement for a partner says of a month, and its page, workbook and PDF.

Not here: which statements are written, and where they are kept (finance.statement), how figures
come about (finance.reconcile). A statement is for the partner: it has no word of our own work, such
as rules, owners, reasons and materiality, and nothing of another partner.
"""

from typing import Final

FORMAT: Final = 1  # of what is kept of a statement

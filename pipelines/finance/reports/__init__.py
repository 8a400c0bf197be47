"""Here: the finance report: its queries, what their figures prove (`verdicts`), and its page.

Not here: how figures come about (finance.reconcile). Templates add no amount and decide nothing.
"""

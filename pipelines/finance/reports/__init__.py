"""Here: the finance report as a page: its queries, its template, its words.

Not here: how figures come about (finance.reconcile). The page computes no amount.
"""

"""Here: what the copy of a closed month is made of, and `verify.py`, which proves it without us.

Not here: when a month may be closed (finance.close), how its copy is read again and compared with
the rows of today (finance.reconcile).
"""

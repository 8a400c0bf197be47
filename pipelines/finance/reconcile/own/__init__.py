"""Here: own books, `[own.NAME]` of the mapping, beside usage or bills: the third side.

A source is read to a temporary table, then compared by one rule of its own, `own_NAME`. Not here:
where its breaks go on to (`sql/break_facts.sql` and after it), which is as for any other rule.
"""

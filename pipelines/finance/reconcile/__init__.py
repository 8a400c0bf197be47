"""Here: usage beside billing: views of both sides, one SQL file for each rule and table, breaks.

Not here: the files of the books (warehouse, finance.books), and the page (finance.reports).
"""

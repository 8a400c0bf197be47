"""Here: the metadata database: its tables and migrations, and rows of runs, scans, decisions.

Not here: what rows mean to a command.
"""

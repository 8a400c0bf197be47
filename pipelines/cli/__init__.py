"""Here: commands: their options, and how results are printed.

Not here: what they do (app, finance). A command decides nothing.
"""

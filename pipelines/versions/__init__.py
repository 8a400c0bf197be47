"""Here: versions of the warehouse: build, publish, roll back, prune, erase; exports.

Not here: what finance makes of a version (finance).
"""

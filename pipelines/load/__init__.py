"""Here: records of a scan into typed tables with history: schema, values, quarantine.

Not here: which scans are loaded, and what becomes of the version (publish).
"""

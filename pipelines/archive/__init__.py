"""Here: scan files: every request and answer of one scan, compressed, with a digest for each line.

Not here: when a scan is read (extract) or which are loaded (publish).
"""

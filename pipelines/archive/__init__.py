"""Here: scan files: every request and answer of one scan, compressed, with a digest for each line.

Not here: when a scan is read (extract) or which are loaded (versions).

`archive.py` has the folder of all files, `scan_file.py` one file, `lines.py` the format of a line.
`records.py` cuts the records out of an answer, `envelope.py` reads what is around them.
"""

"""What the sandbox serves: records that are pure functions of (seed, list, index, version), as JSON bytes.

Here: the five lists of the partner surface, how they grow and how they are restated from day to day.
Not here: HTTP, paging and who may read what. ``dataset`` is the only door; one noun a file below it.
"""

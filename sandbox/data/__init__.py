"""What the sandbox serves: JSON records, pure functions of (seed, list, index, version).

Here: the five lists of the partner surface, how they grow and are restated from day to day.
Not here: HTTP, paging, who may read what. ``dataset`` is the only door; one noun a file below it.
"""

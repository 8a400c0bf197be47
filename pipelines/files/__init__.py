"""Here: where files of a home are kept for good: in its folder, or in a bucket with local copies.

Not here: what is in them (archive, warehouse, finance), and rows about them (metadata).

`store.py` has the interface and the folder, `cached.py` the bucket with a home as its cache,
`bucket.py` the objects of a bucket.
"""

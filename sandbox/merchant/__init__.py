"""The merchant surface's state: organizations and their keys, seeded records, and what is written.

Here: everything below HTTP. ``store`` knows who may come in, ``book`` what every organization
begins with, ``notes`` and ``payments`` what callers write. Not here: routes, descriptions, limits.
"""

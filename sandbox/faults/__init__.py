"""Faults: what a service, a proxy or a wire does wrong, on purpose, to try a client.

To add one: declare a ``Kind`` in the file of its family, in the family's tuple. The command line,
the control routes, their catalogue and the tests find it there; ``catalogue`` lists the families.
"""

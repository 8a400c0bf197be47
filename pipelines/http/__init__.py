"""Here: one request to the service, signed, with its retries; the surfaces of the interface.

Not here: which request comes next (extract), and when it may leave (rate_limit).
"""

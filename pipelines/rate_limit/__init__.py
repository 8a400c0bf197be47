"""Here: when the next request of an actor may leave, shared by all processes.

Not here: retries of a request (http).
"""

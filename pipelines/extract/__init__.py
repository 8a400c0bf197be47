"""Here: how a list is read, page by page, and proven complete although it changes.

Not here: how a page is fetched (http), when (rate_limit), or kept (archive).
"""

"""The wire: tokens, the request budget, retries, one page, the chain of pages.

Nothing here knows what becomes of a page; that is the warehouse's.
"""

"""The routes of the service, one group a file: identity provider, partner surface, operational.

Here: HTTP in, one call, HTTP out. Not here: limits and headers (admission), data, descriptions.
"""

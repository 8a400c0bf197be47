"""Here: settings, connections and folders of a home, read from TOML and the environment.

Not here: the mapping of fields (finance), and what commands write into a home (app).
"""

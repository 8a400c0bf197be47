"""Here: what every package needs: errors with remedies, clocks, durable files, stop requests.

Not here: anything that knows of a list, a version or a file format of ours.
"""

"""Here: what is wrong, or not known, with a home: one function for each question.

Not here: what is done about it. They read; they change nothing.
"""

"""Imported last by the server of forked: what its programs have in common is made before they are.

A first service is put together, since it fills the caches of the libraries that do so (0.1 s each
time). Then the garbage collector is told that all of this stays: it would look through it in each
program. Not here: anything that a program has of its own.
"""

import gc

from sandbox.options import Options
from sandbox.service import app

app(Options(clients=(), base_url="http://127.0.0.1"))
gc.collect()
gc.freeze()

"""How much the long tests try: `EFFORT=50 make test-all` tries 50 times as much as CI."""

import os

EFFORT = int(os.environ.get("EFFORT", "1"))

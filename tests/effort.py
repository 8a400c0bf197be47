"""How much the long tests try: `EFFORT=67 make test-all` tries 67 times as much as CI."""

import os

EFFORT = int(os.environ.get("EFFORT", "1"))

"""``python -m comity``: the same as the console script.

It exists so that the crawler can be started where no script is installed on the path, and by other programmes that know
their interpreter. Nothing else may live here.
"""

from __future__ import annotations

import sys

from comity.cli import main

if __name__ == "__main__":
    sys.exit(main())

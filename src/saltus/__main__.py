"""`python -m saltus`."""

import sys

from saltus.cli import main

sys.exit(main())

"""python -m poem: the command line."""

import sys

from poem.cli import main

sys.exit(main())

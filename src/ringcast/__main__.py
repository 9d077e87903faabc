"""`python -m ringcast` is `ringcast`."""

import sys

from ringcast.cli import main

if __name__ == "__main__":
    sys.exit(main())

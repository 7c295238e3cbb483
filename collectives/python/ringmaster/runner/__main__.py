"""`python3 -m ringmaster.runner` is `horovodrun`."""

import sys

from ringmaster.runner.horovodrun import main

if __name__ == "__main__":
    sys.exit(main())

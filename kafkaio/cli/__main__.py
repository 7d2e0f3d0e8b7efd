"""``python -m kafkaio.cli``."""

import sys

from kafkaio.cli.main import main

sys.exit(main())

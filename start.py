# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Start the assistant: `python3 start.py`, `python3 start.py setup --yes`, `python3 start.py test`.

Without Python: `uv run start.py`, for which the lines above say that any recent Python does and nothing else is needed.
This file reads on every Python, so that an old one can say what it lacks; the work is in assistant/start.py.
"""

import os.path
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - whoever has an older one shall read why it does not start
    sys.exit(
        "The assistant needs Python 3.11 or newer, and this is Python {}.{}. Get a newer one from "
        "https://www.python.org/downloads/, or let uv bring one: uv run start.py".format(*sys.version_info)
    )

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # not there under `python -P`  # noqa: PTH100, PTH120
from assistant.start import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

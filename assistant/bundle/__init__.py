"""One folder with everything for many machines: made once, checked byte by byte, used without a network.

Other packages import from here only, never from the modules behind it.
"""

from assistant.bundle.check import Checked, check
from assistant.bundle.choose import choose, without_indexes
from assistant.bundle.kinds import Wanted
from assistant.bundle.lock import Locked, check_files, read_lock
from assistant.bundle.make import Made, make
from assistant.bundle.manifest import REPORTS, WHEELS, Bundle, Kind, read_bundle
from assistant.bundle.page import lacking_pythons
from assistant.bundle.pythons import unpack_python
from assistant.bundle.report import report_on, write_report

__all__ = [
    "REPORTS",
    "WHEELS",
    "Bundle",
    "Checked",
    "Kind",
    "Locked",
    "Made",
    "Wanted",
    "check",
    "check_files",
    "choose",
    "lacking_pythons",
    "make",
    "read_bundle",
    "read_lock",
    "report_on",
    "unpack_python",
    "without_indexes",
    "write_report",
]

"""One folder with everything for many machines: made once, checked byte by byte, used without a network.

Other packages import from here only, never from the modules behind it.
"""

from assistant_addons.classroom.folder import WHEELS, Bundle, Checked, Kind, check, check_files, read_bundle, read_lock
from assistant_addons.classroom.kinds import Wanted, choose, without_indexes
from assistant_addons.classroom.make import Made, make
from assistant_addons.classroom.starts import unpack_python

__all__ = [
    "WHEELS",
    "Bundle",
    "Checked",
    "Kind",
    "Made",
    "Wanted",
    "check",
    "check_files",
    "choose",
    "make",
    "read_bundle",
    "read_lock",
    "unpack_python",
    "without_indexes",
]

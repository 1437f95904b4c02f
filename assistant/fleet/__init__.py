"""Many machines: each writes one record, and from a folder of records one report is made.

Other packages import from here only, never from the modules behind it.
"""

from assistant.fleet.files import FORMATS, Format, text_of, write_report
from assistant.fleet.notebook import show
from assistant.fleet.reading import Found, Unread, read_lines, read_records
from assistant.fleet.record import LONGEST_NAME, FleetRecord, Installed, own_name, take_record
from assistant.fleet.rows import Row, Standing, rows_of
from assistant.fleet.summary import Fleet, summed_up
from assistant.fleet.tables import lines_of, standings, tables_of, title_of
from assistant.fleet.writing import write_record

__all__ = [
    "FORMATS",
    "LONGEST_NAME",
    "Fleet",
    "FleetRecord",
    "Format",
    "Found",
    "Installed",
    "Row",
    "Standing",
    "Unread",
    "lines_of",
    "own_name",
    "read_lines",
    "read_records",
    "rows_of",
    "show",
    "standings",
    "summed_up",
    "tables_of",
    "take_record",
    "text_of",
    "title_of",
    "write_record",
    "write_report",
]

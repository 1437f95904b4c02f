"""Many machines: each writes one record, and from a folder of records one report is made."""

from assistant.fleet.record import FleetRecord, Installed, own_name, take_record, write_record

__all__ = ["FleetRecord", "Installed", "own_name", "take_record", "write_record"]

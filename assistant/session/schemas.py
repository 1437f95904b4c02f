"""The kinds of files that have a JSON Schema: what people write, and the tables of the catalogue."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import msgspec

from assistant.catalog.tables import Table
from assistant.diagnose import RuleFile
from assistant.model.machine import Machine, Recording
from assistant.model.record import Record
from assistant.session.contribution import Contribution


class Switch(Record, frozen=True):
    """A variable that keeps a library from reporting; `host/telemetry.py` reads the table without this schema."""

    name: str
    value: str
    of: str


class Switches(Record, frozen=True):
    """The file of these variables."""

    switches: Table[Switch]


WRITTEN: dict[str, type[Record]] = {
    "machine": Machine,
    "recording": Recording,
    "rules": RuleFile,
    "contribution": Contribution,
}
# Named by their modules, of which a command needs one at most.
TABLES = {
    "bundles": "catalog.bundles:BundleTables",
    "companions": "catalog.companions:CompanionTables",
    "containers": "export.containers:ContainerTables",
    "cuda": "catalog.rows:CudaTables",
    "directml": "catalog.rows:DirectmlTables",
    "generations": "catalog.generations:GenerationTables",
    "gpus_amd": "catalog.identity:CardTables",
    "gpus_intel": "catalog.identity:CardTables",
    "gpus_nvidia": "catalog.identity:CardTables",
    "indexes": "catalog.rows:IndexTables",
    "issues": "session.issue:IssueTables",
    "launchers": "catalog.launchers:LauncherTables",
    "limits": "catalog.limits:LimitTables",
    "memory": "catalog.memory:MemoryTables",
    "names": "catalog.names:NameTables",
    "needs": "catalog.needs:NeedTables",
    "onnxruntimes": "catalog.onnxruntimes:OnnxRuntimeTables",
    "places": "catalog.places:PlaceTables",
    "recipes": "catalog.recipes:RecipeTables",
    "rocm": "catalog.rows:RocmTables",
    "seen": "session.seen:SeenTables",
    "support": "session.support:SupportTables",
    "systems": "catalog.rows:SystemTables",
    "toolchains": "catalog.toolchains:ToolchainTables",
    "torch": "catalog.rows:TorchTables",
    "variants": "catalog.variants:VariantTables",
    "telemetry": "session.schemas:Switches",
}
NAMES = (*WRITTEN, *TABLES)


def kind(name: str) -> type[Record]:
    """Return what a file is decoded into: a kind of file that people write, or a data file of the catalogue."""
    if name in WRITTEN:
        return WRITTEN[name]
    module, _colon, title = TABLES[name].partition(":")
    found: type[Record] = getattr(import_module(f"assistant.{module}"), title)
    return found


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a kind of file."""
    return described(kind(name))


def described(record: type[Record]) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a record."""
    made = msgspec.json.schema(record, schema_hook=lambda _kind: {"description": "any value"})
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}

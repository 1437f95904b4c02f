"""Which variant of a wheel an installer takes on a machine (PEP 825), and the machine's facts as providers report them.

No installer is run and no provider imported: variantlib would load providers and look at the packages of this Python.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement

from assistant.catalog import load_catalog
from assistant.catalog.variants import ProviderRow, intel_ips, variant_tables
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.machine import Machine, Vendor
from assistant.model.record import Record, from_json, replace
from assistant.plan.gpus import Card, cards_of, driver_of

Features = dict[str, tuple[str, ...]]  # values by feature, both best first
Properties = dict[str, Features]  # features by namespace
PLAIN = ""  # stands for the wheel that is no variant
SCHEMA = "https://variants-schema.wheelnext.dev/v0.2.0.json"  # as variantlib 0.2.2 writes it


class Provider(Record, frozen=True, rename="kebab"):
    """How a file of variants lets a namespace be answered: by a plugin, by one that tools have, or once and for all."""

    requires: tuple[str, ...] = ()
    plugin_api: str | None = None
    optional: bool = False
    builtin: str | None = None
    static_properties: Features = {}
    feature_order: tuple[str, ...] = ()


class Priorities(Record, frozen=True):
    """The namespaces, most important first."""

    namespace: tuple[str, ...]


class VariantFile(
    Record,
    frozen=True,
    kw_only=True,
    omit_defaults=False,
    rename={"schema": "$schema", "priorities": "default-priorities"},
):
    """`NAME-VERSION-variants.json` of an index: what each label of a variant stands for, and who answers for it.

    {"$schema": "https://variants-schema.wheelnext.dev/v0.2.0.json", "default-priorities": {"namespace": ["nvidia"]},
     "providers": {"nvidia": {"requires": ["nvidia-variant-provider>=0.0.1,<1.0.0"],
                              "plugin-api": "nvidia_variant_provider.plugin:NvidiaVariantPlugin"}},
     "variants": {"cu129": {"nvidia": {"cuda_version_lower_bound": ["12.9"], "sm_arch": ["90_real"]}}, "null": {}}}
    """

    schema: str = SCHEMA
    priorities: Priorities
    providers: dict[str, Provider]
    variants: dict[str, Properties] = {}


class VariantChoice(Record, frozen=True, omit_defaults=False):
    """What an installer takes: a label, "" for the plain wheel, None for nothing; all that fit, best first.

    `unread` are the namespaces that it has no answer for.
    """

    label: str | None
    fitting: tuple[str, ...]
    unread: tuple[str, ...] = ()


class Facts(NamedTuple):
    """What providers report of a machine, and the namespaces of which a fact is missing."""

    properties: Properties
    unknown: tuple[str, ...]


def read_variants(text: str, what: str) -> VariantFile:
    """Read a file of variants as strictly as uv and variantlib do; raise `BadInput` with what they would refuse."""
    found = from_json(text, VariantFile, what)
    if set(found.priorities.namespace) != set(found.providers):
        raise _refused(what, _("default-priorities and providers name different namespaces"))
    for namespace, provider in found.providers.items():
        features = set(provider.static_properties)
        if (len(features) > 1 or provider.feature_order) and features != set(provider.feature_order):
            raise _refused(what, _("{namespace} has features of no order", namespace=namespace))
        if sum((bool(provider.requires), bool(provider.builtin), bool(features))) != 1:
            raise _refused(what, _("it does not say how {namespace} is answered", namespace=namespace))
    if used := {one for variant in found.variants.values() for one in variant} - set(found.providers):
        raise _refused(what, _("it does not say how {namespace} is answered", namespace=min(used)))
    return found


def facts_of(machine: Machine, level: int | None = None) -> Facts:
    """Return what the published providers report of a machine; `level` is its processor's, where that was looked at.

    What is not known is not reported, so a variant that needs it is not taken for fitting.
    """
    found: Properties = {}
    unknown: list[str] = []
    cards = cards_of(machine)
    for vendor, report in _REPORTS.items():
        own = [card for card in cards if card.vendor is vendor]
        if not own or machine.os == "macos":  # none of them has a provider, or wheels, there
            continue
        if features := report(machine, own):
            found[vendor.value] = features
        else:
            unknown.append(vendor.value)
    arch = {"amd64": "x86_64", "arm64": "aarch64"}.get((machine.arch or "").lower(), machine.arch)
    if arch == "x86_64":
        found[arch] = {"level": tuple(f"v{one}" for one in range(level or 1, 0, -1))}
        unknown += [arch] if level is None else []
    elif arch == "aarch64":
        versions = _arm_versions(cards)
        found[arch] = {"version": versions or variant_tables().versions.rows[0].versions[-1:]}
        unknown += [] if versions else [arch]
    return Facts(found, tuple(unknown))


def _nvidia(machine: Machine, cards: list[Card]) -> Features:
    """List the bounds of CUDA's versions around the driver's, and the targets of the newest card."""
    driver, known = driver_of(machine, load_catalog()), variant_tables().cuda.rows[0]
    minors = [*range(known.minors[1], known.minors[0] - 1, -1)]
    versions = [(major, minor) for major in range(known.majors[1], known.majors[0] - 1, -1) for minor in minors]
    api = driver.api[:2]
    if driver.obstacle or api not in versions:
        return {}
    lower = [version for version in versions if version <= api]
    upper = [version for version in versions if version > api]
    features = {"cuda_version_lower_bound": _with_majors(lower), "cuda_version_upper_bound": _with_majors(upper)}
    newest = max(card.capability for card in cards)
    if newest >= known.capability:
        major, minor = newest
        real = (f"{major}{one}_real" for one in range(minor, -1, -1))
        features["sm_arch"] = (*real, f"{major}0_virtual")
    return {name: values for name, values in features.items() if values}


def _with_majors(versions: list[tuple[int, int]]) -> tuple[str, ...]:
    """Write versions, and after the first minor of a major ("12.0") the major alone ("12")."""
    return tuple(text for major, minor in versions for text in (f"{major}.{minor}", *([str(major)] * (minor == 0))))


def _amd(machine: Machine, cards: list[Card]) -> Features:
    """List the targets, those of cards before those of processors, and the release of ROCm, also without its patch."""
    targets = dict.fromkeys(card.gfx for card in sorted(cards, key=lambda card: card.integrated) if card.gfx)
    release = re.match(r"(\d+\.\d+)(?:\.\d+)?", machine.rocm_version or "")
    releases = dict.fromkeys((release[0], release[1])) if release else {}
    features: Features = {"gfx_arch": tuple(targets), "rocm_version": tuple(releases)}
    return {name: values for name, values in features.items() if values}


def _intel(machine: Machine, _cards: list[Card]) -> Features:
    ids = [(gpu.pci_id or "").lower() for gpu in machine.gpus]
    devices = [one.partition(":")[2] for one in ids if one.startswith("8086:")]
    ips = dict.fromkeys(ip for device in devices for ip in intel_ips().get(device, ()))
    return {"device_ip": tuple(ips)} if ips else {}


_REPORTS = {Vendor.NVIDIA: _nvidia, Vendor.AMD: _amd, Vendor.INTEL: _intel}


def _arm_versions(cards: Collection[Card]) -> tuple[str, ...]:
    """List the versions of ARM that Apple's chip has, () where it is not known."""
    tables = variant_tables()
    versions = tables.versions.rows[0].versions
    for card in cards:
        for row in tables.apple.rows:
            if card.vendor is Vendor.APPLE and re.search(rf"\b{row.chip}\b", card.name):
                return versions[versions.index(row.version) :]
    return ()


def choose_variant(
    found: VariantFile, facts: Properties, *, here: Collection[str] | None = None, given: bool = False
) -> VariantChoice:
    """Return what uv takes: `here` are the labels that have a wheel for this Python and system, by default all.

    `given`: as if the facts were handed over for every namespace that uv has no provider of (see `with_facts`).
    """
    wheels = {*found.variants, PLAIN} if here is None else set(here)
    file = with_facts(found, facts) if given else found
    answers = {name: _answer(name, provider, facts) for name, provider in file.providers.items()}
    supported = {name: features for name, features in answers.items() if features is not None}
    order = [name for name in file.priorities.namespace if name in supported]
    slots = [(name, feature) for name in order for feature in supported[name]]
    ranked = sorted(_ranked(file.variants, supported, slots))
    labels = [label for _key, label in ranked if label in wheels]
    fitting = (*labels, *([PLAIN] if PLAIN in wheels else []))
    return VariantChoice(
        label=next(iter(fitting), None),
        fitting=fitting,
        unread=tuple(name for name, features in answers.items() if features is None),
    )


def _ranked(
    variants: dict[str, Properties], supported: Properties, slots: list[tuple[str, str]]
) -> Iterator[tuple[tuple[int, ...], str]]:
    """Give each variant that fits its place in each feature: that of its best value, the last where it names none."""
    for label, properties in variants.items():
        places = {
            (name, feature): _place(values, supported.get(name, {}).get(feature, ()))
            for name, features in properties.items()
            for feature, values in features.items()
        }
        if None not in places.values():
            last = 1 + max((len(supported[name][feature]) for name, feature in slots), default=0)
            yield tuple(places.get(slot) or 0 if slot in places else last for slot in slots), label


def _place(values: tuple[str, ...], known: tuple[str, ...]) -> int | None:
    return min((known.index(value) for value in values if value in known), default=None)


def _answer(namespace: str, provider: Provider, facts: Properties) -> Features | None:
    """Return the properties that uv takes for given, None where it has no provider of the namespace."""
    if provider.static_properties:
        order = provider.feature_order or tuple(provider.static_properties)
        return {feature: provider.static_properties[feature] for feature in order}
    row = _row(namespace, provider)
    return facts.get(namespace, {}) if row and row.uv and not provider.optional else None


def _row(namespace: str, provider: Provider) -> ProviderRow | None:
    """Find the known provider that a file means: by its package, in a version that it allows, and the object within."""
    for row in variant_tables().providers.rows:
        for text in provider.requires[:1]:
            try:
                wanted = Requirement(text)
            except InvalidRequirement:
                return None
            plugin = provider.plugin_api or wanted.name.replace("-", "_")
            named = (row.namespace, row.package, row.plugin) == (namespace, wanted.name, plugin)
            if named and (row.version is None or wanted.specifier.contains(row.version, prereleases=True)):
                return row
    return None


def with_facts(found: VariantFile, facts: Properties) -> VariantFile:
    """Return a file of variants with this machine's facts for the namespaces that uv has no provider of.

    uv and variantlib take the static properties of a file for given, whatever the machine: it holds for this one alone.
    """
    providers = {
        name: static(facts[name]) if name in facts and _answer(name, provider, facts) is None else provider
        for name, provider in found.providers.items()
    }
    return replace(found, providers=providers)


def static(features: Features) -> Provider:
    """Write what a provider reports as static properties."""
    return Provider(static_properties=features, feature_order=tuple(features) if len(features) > 1 else ())


def facts_file(facts: Properties) -> VariantFile:
    """Return a file of variants that holds a machine's facts and no variant yet."""
    return VariantFile(
        priorities=Priorities(namespace=tuple(facts)),
        providers={name: static(features) for name, features in facts.items()},
    )


def _refused(what: str, reason: object) -> BadInput:
    return BadInput(
        _("{what} cannot be read: {reason}.", what=what, reason=reason),
        hint=_("Tell the publisher of the package: uv refuses such a file, too."),
    )

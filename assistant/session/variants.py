"""Which variant of a package uv and pip would install here: the machine's facts, and what an index publishes."""

from __future__ import annotations

from packaging.requirements import Requirement

from assistant.catalog.variants import variant_tables, x86_level
from assistant.host.base import Host
from assistant.host.variants import Published
from assistant.i18n import Message, _
from assistant.install import Sources
from assistant.model.errors import NothingFits
from assistant.model.machine import Machine
from assistant.model.record import Record, to_plain
from assistant.parsers.system import cpu_flags
from assistant.plan import (
    PLAIN,
    Facts,
    VariantChoice,
    VariantFile,
    choose_variant,
    facts_file,
    facts_of,
    read_variants,
    with_facts,
)


class Variants(Record, frozen=True, omit_defaults=False):
    """What installers would take of a package: `uv` as it is, `with_facts` if this machine's facts are handed over.

    `pip` is the label that pip takes, None where there is no plain wheel. `variants_json` is the published file with
    the facts of this machine in it, for the namespaces that uv has no provider of. `unknown` are the namespaces of
    which a fact of the machine is missing; `lines` say all that to a person.
    """

    package: str
    version: str
    published: bool
    uv: VariantChoice
    with_facts: VariantChoice
    pip: str | None
    properties: dict[str, dict[str, tuple[str, ...]]]
    unknown: tuple[str, ...]
    variants_json: object
    lines: tuple[Message, ...]


def variant_facts(machine: Machine, host: Host | None) -> Facts:
    """Return what providers report of a machine; its processor is looked at where the host is that machine."""
    flags = cpu_flags(host.read("/proc/cpuinfo").text) if host and machine.os == "linux" else None
    return facts_of(machine, x86_level(flags) if flags else None)


def variants_of(wanted: Requirement, machine: Machine, facts: Facts, python: str, sources: Sources) -> Variants:
    """Say which wheel of a package is taken from the user's sources; raise `NothingFits` where no wheel fits."""

    def taken(found: Published) -> bool:
        file = _file(wanted.name, found)
        return not file or choose_variant(file, facts.properties, here=found.labels).label is not None

    found = sources.variants(wanted, machine, python, taken)
    if found is None:
        raise NothingFits(
            _("No wheel of {package} fits this machine and Python {python}.", package=str(wanted), python=python),
            hint=_("Check the name and the version, or choose another index.", option="--index-url"),
        )
    return _answer(wanted.name, found.version, _file(wanted.name, found), facts, found.labels)


def _file(name: str, found: Published) -> VariantFile | None:
    return read_variants(found.text, f"{name}-{found.version}-variants.json") if found.text else None


def facts_as_file(facts: Facts) -> object:
    """Return a machine's facts as a file of variants holds them; raise `NothingFits` where there are none."""
    if not facts.properties:
        raise NothingFits(
            _("No provider of variants reports anything of this machine."),
            hint=_("Give its processor (arch) and its cards, as `assistant detect --json` does."),
        )
    return to_plain(facts_file(facts.properties))


def variants_in(file: VariantFile, what: str, facts: Facts) -> Variants:
    """Say which of the variants in a file is taken, if each has a wheel here, and there is a plain one, too."""
    return _answer(what, "", file, facts, frozenset((*file.variants, PLAIN)))


def _answer(package: str, version: str, file: VariantFile | None, facts: Facts, labels: frozenset[str]) -> Variants:
    plain = PLAIN if PLAIN in labels else None
    alone = VariantChoice(label=plain, fitting=(PLAIN,) if plain is not None else ())
    asis = choose_variant(file, facts.properties, here=labels) if file else alone
    given = choose_variant(file, facts.properties, here=labels, given=True) if file else alone
    unknown = tuple(name for name in facts.unknown if file and name in file.providers)
    said = _lines(f"{package} {version}".strip(), file, asis, given, unknown, plain=plain is not None)
    return Variants(
        package=package,
        version=version,
        published=file is not None,
        uv=asis,
        with_facts=given,
        pip=plain,
        properties=facts.properties,
        unknown=unknown,
        variants_json=to_plain(with_facts(file, facts.properties)) if file else None,
        lines=said,
    )


def _lines(
    package: str,
    file: VariantFile | None,
    asis: VariantChoice,
    given: VariantChoice,
    unknown: tuple[str, ...],
    *,
    plain: bool,
) -> tuple[Message, ...]:
    if file is None:
        return (_("{package} has no variants: every installer takes the plain wheel.", package=package),)
    uv, pip = variant_tables().tools.rows
    with_option = {"package": package, "version": uv.version, "switch": uv.option}
    lines = [_taken(asis.label).format(**with_option)]
    if asis.fitting[1:]:
        lines.append(_("Fitting, too, best first: {labels}.", labels=_named(asis.fitting[1:])))
    if asis.unread:
        lines.append(_("uv has no provider of {names}: it passes over their variants.", names=", ".join(asis.unread)))
    if given.label != asis.label:
        text = _("With this machine's facts as static properties it takes {label}.")
        lines.append(text.format(label=_named((given.label or PLAIN,))))
    if unknown:
        names = ", ".join(unknown)
        lines.append(
            _("Not fully known of this machine: {names}. uv looks for itself when it runs there.", names=names)
        )
    said = _("pip {version} does not read variants: it takes the plain wheel.")
    none = _("pip {version} does not read variants, and there is no plain wheel here for it.")
    return (*lines, (said if plain else none).format(version=pip.version))


def _taken(label: str | None) -> Message:
    if label is None:
        return _("uv {version} with {switch} finds no wheel of {package} that fits.")
    if label == PLAIN:
        return _("uv {version} with {switch} takes the plain wheel of {package}.")
    return _("uv {version} with {switch} takes {label} of {package}.").format(label=label)


def _named(labels: tuple[str, ...]) -> Message:
    named = ", ".join(label for label in labels if label)
    if PLAIN not in labels:
        return Message("{labels}").format(labels=named)
    return _("{labels}, the plain wheel", labels=named) if named else _("the plain wheel")

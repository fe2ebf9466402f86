"""The public names of fastrpc as the sources have them: what they are, their members, parameters and types.

docs/api.md says which modules and names are public. griffe reads the sources without running them, of
compiled modules the stubs. A public name that does not exist is a LookupError, and so is one without a
docstring, or a method or property of one; methods inherit the docstrings of their bases, and names those of
the classes of their module that they stand for.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import NamedTuple

import griffe

ROOT = Path(__file__).resolve().parent.parent.parent
MANY_FUNCTIONS = 8
"""A class with more has a page of its own."""
LEFT_OUT = "…"
"""The default of an option that a function takes by ``Unpack``: the sources have its type alone."""
WITHOUT_WORDS = ("__version__",)
MODULE = re.compile(r"`(fastrpc\.[\w.]+)`(?: \(its ((?:`\w+`(?:, | and )?)+)\))?")
NAME_OF_MODULE = re.compile(r"`(\w+)` of\s+`(fastrpc\.[\w.]+)`")
IN_LOOP = re.compile(r"_(?:each_)?in_loop\((\w+\.\w+)\)")
RECORDS = ("TypedDict", "NamedTuple", "Struct")


class Entry(NamedTuple):
    """A public name: the path by which it is imported, its definition, and the page that describes it."""

    path: str
    definition: griffe.Object
    page: str

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


class Parameter(NamedTuple):
    name: str
    annotation: str
    default: str
    """"" for one without a default."""


@functools.cache
def package() -> griffe.Module:
    loaded = griffe.load("fastrpc", search_paths=[ROOT], resolve_aliases=True, resolve_external=False)
    assert isinstance(loaded, griffe.Module)
    return loaded


def module_named(module: str) -> griffe.Module:
    found = package() if module == "fastrpc" else package()[module.removeprefix("fastrpc.")]
    assert isinstance(found, griffe.Module)
    return found


@functools.cache
def modules() -> dict[str, list[str]]:
    """Return the public modules, each with its public names; an empty list stands for all that it has."""
    listed = (ROOT / "docs/api.md").read_text(encoding="utf-8").partition("\n| name")[0]
    some = {module: re.findall(r"`(\w+)`", names) for module, names in MODULE.findall(listed)}
    some |= {module: [name] for name, module in NAME_OF_MODULE.findall(listed)}
    return {"fastrpc": [], **dict(sorted(some.items()))}


def definition_of(found: griffe.Object | griffe.Alias) -> griffe.Object | None:
    """Return what a name stands for; None if another library has it."""
    try:
        return found.final_target if isinstance(found, griffe.Alias) else found
    except griffe.AliasResolutionError:
        return None


def _names_of(module: str) -> Iterator[str]:
    """Yield the public names of a module: those listed, those in ``__all__``, or what has a docstring."""
    found = module_named(module)
    exported = modules()[module] or [str(name) for name in found.exports or ()]
    if missing := [name for name in exported if name not in found.members]:
        raise LookupError(f"{module}: no {', '.join(missing)}, which docs/api.md or __all__ lists")
    for name, member in found.members.items():
        is_own = not member.is_alias and not member.is_module and member.is_public
        if name in exported or (not exported and is_own and member.docstring is not None):
            yield name


@functools.cache
def public() -> dict[str, griffe.Object | griffe.Alias]:
    """Return each public name by its path: its definition, or the import of what another library has."""
    names = [(module, name) for module in modules() for name in _names_of(module)]
    found = {f"{module}.{name}": module_named(module).members[name] for module, name in names}
    return {path: definition_of(member) or member for path, member in found.items()}


@functools.cache
def entries() -> dict[str, Entry]:
    """Return the entry of each public name but those of other libraries. Raises LookupError."""
    found: dict[str, Entry] = {}
    homes: dict[str, str] = {}
    for path, definition in public().items():
        if isinstance(definition, griffe.Alias):
            continue
        module, _, name = path.rpartition(".")
        if definition.docstring is None and (stands_for := _class_of(definition)) is not None:
            definition.docstring = stands_for.docstring
        if definition.docstring is None and name not in WITHOUT_WORDS:
            raise LookupError(f"{path}: a public name without a docstring")
        if isinstance(definition, griffe.Class) and (missing := undescribed_members(definition)):
            raise LookupError(f"{path}: {', '.join(missing)} without a docstring")
        is_large = isinstance(definition, griffe.Class) and len(functions_of(definition)) > MANY_FUNCTIONS
        page = f"reference/{module}/{name}.md" if is_large else f"reference/{module}.md"
        found[path] = Entry(path, definition, homes.setdefault(definition.path, page))
    return found


def _class_of(definition: griffe.Object) -> griffe.Object | griffe.Alias | None:
    """Return the class of its module that a name is bound to; None for anything else."""
    if not isinstance(definition, griffe.Attribute) or not isinstance(definition.parent, griffe.Module):
        return None
    found = definition.parent.members.get(str(definition.value))
    return found if found is not None and found.is_class else None


@functools.cache
def described() -> dict[str, Entry]:
    """Return the entry that describes each definition, by its path: the first of those that import it."""
    first: dict[str, Entry] = {}
    for entry in entries().values():
        first.setdefault(entry.definition.path, entry)
    return first


# ------------------------------------------------------------------------------------------------- members


def _members_of(found: griffe.Class) -> Iterator[tuple[str, griffe.Object]]:
    """Yield the public members of a class, and those of bases that have no entry of their own."""
    with_entries = {each.path for each in public().values() if not isinstance(each, griffe.Alias)}
    elsewhere = {base.path for base in found.mro() if base.path in with_entries}
    for name, member in found.all_members.items():
        definition = None if name.startswith("_") else definition_of(member)
        if definition and definition.parent and definition.parent.path not in elsewhere:
            if definition.docstring is None:
                definition.docstring = _inherited_docstring(found, name)
            yield name, _twin_of(definition) or definition


def _twin_of(member: griffe.Object) -> griffe.Function | None:
    """Return the method that an attribute like ``_in_loop(AsyncClient.ping)`` is, without async; None for
    any other member."""
    of = IN_LOOP.fullmatch(str(member.value)) if isinstance(member, griffe.Attribute) else None
    if of is None:
        return None
    twin = copy(definition_of(member.module[of[1]]))
    assert isinstance(twin, griffe.Function)
    twin.labels = twin.labels - {"async"}
    twin.returns = str(twin.returns).replace("AsyncIterator", "Iterator")
    return twin


def _inherited_docstring(found: griffe.Class, name: str) -> griffe.Docstring | None:
    """Return the docstring that the nearest base gives a member; None if no base does."""
    members = (base.members[name] for base in found.mro() if name in base.members)
    definitions = (definition_of(member) for member in members)
    return next((each.docstring for each in definitions if each and each.docstring), None)


def undescribed_members(found: griffe.Class) -> list[str]:
    """Return the methods and properties of a class that neither it nor a base has a docstring for."""
    words = found.docstring.value if found.docstring else ""
    return [
        name
        for name, each in _members_of(found)
        if (isinstance(each, griffe.Function) or "property" in each.labels)
        and not each.docstring
        and f"`{name}`" not in words
    ]


def functions_of(found: griffe.Class) -> dict[str, griffe.Function]:
    """Return the public methods of a class."""
    return {name: each for name, each in _members_of(found) if isinstance(each, griffe.Function)}


def attributes_of(found: griffe.Class) -> dict[str, griffe.Attribute]:
    """Return the attributes of a class that have a docstring, or are named in its own, or a record's."""
    words = found.docstring.value if found.docstring else ""
    bases = {str(base).partition("[")[0].rpartition(".")[2] for base in found.bases}
    is_record = "dataclass" in found.labels or not bases.isdisjoint(RECORDS)
    members = [(name, each) for name, each in _members_of(found) if isinstance(each, griffe.Attribute)]
    return {name: each for name, each in members if each.docstring or is_record or f"`{name}`" in words}


def constructor_of(found: griffe.Class) -> griffe.Function | None:
    made = found.all_members.get("__init__")
    definition = definition_of(made) if made is not None else None
    is_dict = any(str(base).endswith("TypedDict") for base in found.bases)
    return definition if isinstance(definition, griffe.Function) and not is_dict else None


def _options_of(annotation: str) -> Iterator[Parameter]:
    """Yield the options that an ``Unpack[…]`` stands for; those of its bases first."""
    name = annotation.removeprefix("Unpack[").removesuffix("]").rpartition(".")[2]
    for module in ("fastrpc.options", "fastrpc.compat.highlevel.options"):
        found = module_named(module).members.get(name)
        if isinstance(found, griffe.Class):
            for base in found.bases:
                yield from _options_of(str(base))
            for option, member in found.members.items():
                if isinstance(member, griffe.Attribute):
                    yield Parameter(option, str(member.annotation), LEFT_OUT)
            return


def parameters_of(function: griffe.Function) -> Iterator[Parameter]:
    """Yield the parameters of a function. Where it says Any itself, the type is that of an overload."""
    of_overloads: dict[str, str] = {}
    for overload in function.overloads or ():
        for parameter in overload.parameters:
            if str(parameter.annotation) != "None":
                of_overloads.setdefault(parameter.name, str(parameter.annotation))
    stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}
    for parameter in function.parameters:
        annotation = str(parameter.annotation or "")
        if annotation in ("", "Any"):
            annotation = of_overloads.get(parameter.name, annotation)
        if annotation.startswith("Unpack["):
            yield from _options_of(annotation)
        elif parameter.kind in stars:
            yield Parameter(stars[parameter.kind] + parameter.name, annotation, "")
        elif parameter.name not in ("self", "cls"):
            yield Parameter(parameter.name, annotation, str(parameter.default or ""))

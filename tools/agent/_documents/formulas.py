"""Formulas as TeX: the TeX that the page contains, else converted from MathML.

In a line of text, 1/2 and x¹⁰ are right only if their structure is kept: `\\frac{1}{2}`, `x^{10}`. Symbols
stay the characters that they are. The two libraries for this are unmaintained, raise on a fraction without a
denominator, and recurse as deep as the page does. This module goes `DEEPEST` elements deep and gives deeper
ones as text. Linear in the length of the formula.
"""

from __future__ import annotations

import re

import lxml.etree

from .tree import plain_text, remove, squeeze, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DEEPEST = 50
SPECIAL = re.compile(r"[\\{}#%&$_^~]")
SPELT = {"\\": "\\backslash ", "^": "\\hat{}", "~": "\\sim "}
INVISIBLE = {ord(character): None for character in "\u2061\u2062\u2063\u2064\u200b"}
FUNCTIONS = words(
    "arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln "
    "log max min Pr sec sin sinh sup tan tanh"
)
ACCENTS = {
    **dict.fromkeys("^ˆ\u0302", "hat"),
    **dict.fromkeys("~˜\u0303", "tilde"),
    **dict.fromkeys("¯\u0304", "bar"),
    **dict.fromkeys("‾―─\u0305", "overline"),
    **dict.fromkeys("→⃗", "vec"),
    **dict.fromkeys("˙.\u0307", "dot"),
    **dict.fromkeys("¨\u0308", "ddot"),
    "⏞": "overbrace",
}
BELOW = {"_": "underline", "¯": "underline", "̲": "underline", "⏟": "underbrace"}
LIMITS = re.compile(r"[∑∏∐∫∬∭∮⋃⋂⋀⋁⨁⨂]|\\(?:lim(?:inf|sup)?|max|min|sup|inf|det|gcd|Pr)\b")
VARIANTS = {"double-struck": "mathbb", "bold": "mathbf", "script": "mathcal", "fraktur": "mathfrak"}
SPACES = re.compile(r"\s+")
PROSE = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{3,}")
TEX_IMAGE = re.compile(r"(?:^|[\s_-])(?:math|tex|latex)(?:$|[\s_-])", re.IGNORECASE)
RENDERED = re.compile(r"MathJax|mjx")
TYPESET = re.compile(r"math|katex|mjx", re.IGNORECASE)


def of_math(element: Any) -> str:
    """Return a formula in TeX, between dollars."""
    tex = ""
    for note in element.iter("annotation"):
        if "tex" in (note.get("encoding") or "").lower():
            tex = tex or note.text or ""
    said = element.get("alttext") or ""
    if not tex.strip() and ("\\" in said or not PROSE.search(said)):
        tex = said
    tex = _bare(tex) or _tex(element, 0).replace(PRESCRIPTS, "")
    return f"${tex}$" if tex else ""


def of_image(element: Any) -> str:
    """Return the formula that an image shows; empty if it shows none."""
    alt = squeeze(element.get("alt") or "")
    shown = alt and TEX_IMAGE.search(element.get("class") or "") is not None
    return f"${_bare(alt)}$" if shown else ""


def _bare(tex: str) -> str:
    """TeX without the dollars and style commands around it."""
    tex = squeeze(tex)
    for before, after in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("{\\displaystyle", "}")):
        if tex.startswith(before) and tex.endswith(after) and len(tex) >= len(before) + len(after):
            tex = tex[len(before) : -len(after)].strip()
    return tex


def settle(root: Any) -> None:
    """Keep the most expressive form of each formula: pages contain several side by side, some hidden."""
    for script in list(root.iter("script")):
        kind = (script.get("type") or "").lower()
        if kind.startswith(("math/tex", "math/mml")):
            _make_math(script, kind)
    around: dict[Any, None] = {}
    for element in list(root.iter("math")):
        for _, above in zip(range(4), element.iterancestors(), strict=False):
            if TYPESET.search(above.get("class") or above.tag) is None:
                break
            around[above] = None
    for above in around:
        _show_alone(above)
    for box in list(root.iter("span")):
        if box.get("class") == "katex" and next(box.iter("math"), None) is None:
            shown = squeeze(plain_text(box))
            box[:] = []
            box.text = f"[formula typeset without its structure: {shown}]"
    for box in list(root.iter("mjx-container")):
        if next(box.iter("math"), None) is None:
            said = next((inner.get("data-latex") for inner in box.iter() if inner.get("data-latex")), None)
            _turn_into_math(box, said or box.get("aria-label") or "\\text{formula}")


def _show_alone(above: Any) -> None:
    """Remove what hides the formula in an element, and the pictures that repeat it."""
    above.attrib.pop("style", None)
    for twin in list(above):
        if twin.get("aria-hidden") == "true" and next(twin.iter("math"), None) is None:
            remove(twin)
    twin = above.getnext()
    is_picture = twin is not None and twin.tag == "img" and not (above.tail or "").strip()
    if is_picture and TYPESET.search(twin.get("class") or ""):
        remove(twin)


def _make_math(script: Any, kind: str) -> None:
    source = script.text or ""
    before = script.getprevious()
    while before is not None and RENDERED.search(before.get("class") or ""):
        if (before.tail or "").strip():
            break
        remove(before)
        before = script.getprevious()
    if kind.startswith("math/mml"):
        parsed = lxml.etree.HTML(source) if source.strip() else None
        inner = next(parsed.iter("math"), None) if parsed is not None else None
        source = of_math(inner)[1:-1] if inner is not None else ""
    _turn_into_math(script, source)


def _turn_into_math(element: Any, tex: str) -> None:
    tail = element.tail
    element.clear()
    element.tail = tail
    element.tag = "math"
    note = lxml.etree.SubElement(element, "annotation", encoding="application/x-tex")
    note.text = tex


# --- MathML -------------------------------------------------------------------------------------------------


def _tex(element: Any, depth: int) -> str:
    tag = element.tag
    if tag in LEAVES:
        return _leaf(element, tag)
    if depth > DEEPEST:
        return SPECIAL.sub(" ", squeeze(" ".join(element.itertext())))
    if tag == "mprescripts":
        return PRESCRIPTS
    parts = [_tex(child, depth + 1) for child in element if child.tag not in NOTES]
    if tag in OF_THREE:
        return OF_THREE[tag](element, *[*parts, "", "", ""][:3])
    if tag in OF_MANY:
        return OF_MANY[tag](element, parts)
    if tag == "semantics":
        return parts[0] if parts else ""
    return _joined([_spelt(squeeze(element.text or "")), *parts])


def _joined(parts: list[str]) -> str:
    """The parts side by side, with spaces where two letters or numbers would join."""
    joined: list[str] = []
    last = ""
    for part in parts:
        if not part:
            continue
        if last and part[0].isalnum() and last[-1].isalnum():
            joined.append(" ")
        joined.append(part)
        last = part
    return "".join(joined)


def _leaf(element: Any, tag: str) -> str:
    text = squeeze(plain_text(element).translate(INVISIBLE))
    if tag == "mi":
        if text in FUNCTIONS:
            return f"\\{text}"
        variant = VARIANTS.get(element.get("mathvariant") or "")
        if variant:
            return f"\\{variant}{{{_spelt(text)}}}"
        return f"\\mathrm{{{_spelt(text)}}}" if len(text) > 1 and text.isascii() else _spelt(text)
    if tag in ("mtext", "ms") and any(map(str.isalpha, text)):
        return f"\\text{{{_spelt(SPACES.sub(' ', plain_text(element)))}}}" if len(text) > 1 else _spelt(text)
    return _spelt(text)


def _spelt(text: str) -> str:
    return SPECIAL.sub(lambda match: SPELT.get(match[0], f"\\{match[0]}"), text)


def _group(part: str) -> str:
    return part if len(part) == 1 else f"{{{part}}}"


def _base(part: str) -> str:
    """The base of an index, in braces unless it is a single token."""
    simple = len(part) == 1 or part.isalnum() or re.fullmatch(r"\\[A-Za-z]+", part) or LIMITS.fullmatch(part)
    return part if simple else f"{{{part}}}"


def _scripts(base: str, below: str, above: str) -> str:
    lower = f"_{_group(below)}" if below else ""
    primes = above and not above.strip("′″‴'")
    return f"{base}{lower}{above if primes else f'^{_group(above)}' if above else ''}"


def _over(base: str, over: str) -> str:
    accent = ACCENTS.get(over)
    return f"\\{accent}{{{base}}}" if accent else f"\\overset{{{over}}}{{{base}}}"


def _under(base: str, under: str) -> str:
    mark = BELOW.get(under.lstrip("\\"))
    return f"\\{mark}{{{base}}}" if mark else f"\\underset{{{under}}}{{{base}}}"


def _around(base: str, under: str, over: str) -> str:
    if LIMITS.match(base):
        return _scripts(base, under, over)
    inner = _over(base, over) if over else base
    return _under(inner, under) if under else inner


def _fraction(element: Any, upper: str, lower: str, _: str) -> str:
    is_choice = (element.get("linethickness") or "").strip() in ("0", "0px", "0pt", "0em")
    return f"\\{'binom' if is_choice else 'frac'}{{{upper}}}{{{lower}}}"


def _matrix(rows: list[str]) -> str:
    lines = " \\\\ ".join(rows)
    return f"\\begin{{matrix}}{lines}\\end{{matrix}}"


def _fenced(element: Any, parts: list[str]) -> str:
    marks = squeeze(element.get("separators", ",")).replace(" ", "")
    inside = []
    for index, part in enumerate(parts):
        mark = _spelt(marks[min(index - 1, len(marks) - 1)]) if marks and index else ""
        inside.append(mark + part)
    return f"{_spelt(element.get('open', '('))}{_joined(inside)}{_spelt(element.get('close', ')'))}"


def _multiscripts(_: Any, parts: list[str]) -> str:
    """Indices after a base, and before it."""
    base, *rest = parts or [""]
    middle = rest.index(PRESCRIPTS) if PRESCRIPTS in rest else len(rest)
    shown = "".join(_scripts("{}", *pair) for pair in _pairs(rest[middle + 1 :])) + _base(base)
    for number, pair in enumerate(_pairs(rest[:middle])):
        shown = _scripts(f"{shown}{{}}" if number else shown, *pair)
    return shown


def _pairs(parts: list[str]) -> list[tuple[str, str]]:
    return list(zip(parts[::2], [*parts[1::2], ""], strict=False))


def _enclosed(element: Any, parts: list[str]) -> str:
    inside = _joined(parts)
    notation = element.get("notation") or "longdiv"
    for word, command in (("radical", "sqrt"), ("strike", "cancel"), ("box", "boxed"), ("circle", "boxed")):
        if word in notation:
            return f"\\{command}{{{inside}}}"
    return inside


PRESCRIPTS = "\0"
NOTES = words("annotation annotation-xml")
LEAVES = words("mi mn mo mtext ms")
OF_THREE: dict[str, Callable[[Any, str, str, str], str]] = {
    "mfrac": _fraction,
    "msup": lambda _, base, above, __: _scripts(_base(base), "", above),
    "msub": lambda _, base, below, __: _scripts(_base(base), below, ""),
    "msubsup": lambda _, base, below, above: _scripts(_base(base), below, above),
    "mover": lambda _, base, over, __: _around(base, "", over),
    "munder": lambda _, base, under, __: _around(base, under, ""),
    "munderover": lambda _, base, under, over: _around(base, under, over),
    "mroot": lambda _, base, index, __: f"\\sqrt[{index}]{{{base}}}",
    "maction": lambda _, shown, *__: shown,
}
OF_MANY: dict[str, Callable[[Any, list[str]], str]] = {
    "msqrt": lambda _, parts: f"\\sqrt{{{_joined(parts)}}}",
    "mtable": lambda _, rows: _matrix(rows),
    "mtr": lambda _, cells: " & ".join(cells),
    "mlabeledtr": lambda _, cells: " & ".join(cells),
    "mfenced": _fenced,
    "mmultiscripts": _multiscripts,
    "menclose": _enclosed,
    "mphantom": lambda _, __: "",
    "mspace": lambda _, __: " ",
}

"""Formulas to MathML while the site is built, so that pages need no scripts and no network.

`pymdownx.arithmatex` finds `$…$` and `$$…$$` (and leaves code alone); what it marks is converted
here by latex2mathml, which copies or drops what it does not understand. So its result is checked,
and anything suspicious stops the build, as does a dollar sign that belongs to no formula.
"""

import html
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
_CODE = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_BLOCKS = {"align*", "array", "cases", "matrix", "pmatrix", "split"}
_CHILDREN = {
    **dict.fromkeys(("mfrac", "mover", "mroot", "msub", "msup", "munder"), 2),
    **dict.fromkeys(("msubsup", "munderover"), 3),
}
_LIMITS = {"max", "min", "∑"}  # in a display their limits stand above and below
_STACKED = {"msub": "munder", "msubsup": "munderover"}
_THIN = {"lspace": "0.167em", "rspace": "0.167em"}
_OPERATORS = {  # with the spaces that TeX puts around them
    "log": _THIN,
    "max": _THIN,
    "min": _THIN,
    "/": {"lspace": "0", "rspace": "0"},
    "∼": {"lspace": "0.278em", "rspace": "0.278em"},
    "‖": {"lspace": "0", "rspace": "0", "stretchy": "false"},
}
_PRIME = "′"


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Replace the formulas of one page (an event of MkDocs)."""
    source = page.file.src_uri
    content = _FORMULA.sub(lambda match: _replace(match, source), content)
    outside_code = _CODE.sub("", content)
    prose = _TAG.sub("", outside_code)
    if "$" in prose or "arithmatex" in outside_code:
        place = prose.partition("$")[0][-60:]
        raise PluginError(f"{source}: a formula was not recognised, after {place!r}.")
    return content


def _replace(match: re.Match[str], source: str) -> str:
    latex = html.unescape(match["latex"]).strip()
    display = match["tag"] == "div"
    try:
        mathml = to_mathml(latex, display)
    except Exception as error:  # latex2mathml has many kinds of them
        raise PluginError(f"{source}: cannot convert {latex!r}: {error!r}.") from error
    return f'<div class="formula">{mathml}</div>' if display else mathml


def to_mathml(latex: str, display: bool) -> str:
    """Convert one formula, or raise an error that says what is wrong with it."""
    unescaped = re.sub(r"\\[{}\\]", "", latex)
    if unescaped.count("{") != unescaped.count("}"):
        raise ValueError("braces do not match")
    unknown = set(re.findall(r"\\begin\{(.*?)\}", latex)) - _BLOCKS
    if unknown:
        raise ValueError(f"environment {sorted(unknown)[0]!r}; known: {sorted(_BLOCKS)}")
    ElementTree.register_namespace("", _NAMESPACE)
    root = ElementTree.fromstring(convert(latex, display="block" if display else "inline"))
    for element in root.iter():
        name = element.tag.removeprefix(f"{{{_NAMESPACE}}}")
        if name == "merror" or set(element.text or "") & set("\\&"):
            raise ValueError(f"unknown command {element.text!r}")
        if len(element) != _CHILDREN.get(name, len(element)):
            raise ValueError(f"{name} has {len(element)} parts")
        if display and name in _STACKED and element[0].text in _LIMITS:
            element.tag = f"{{{_NAMESPACE}}}{_STACKED[name]}"
        if element.text in _OPERATORS:
            element.tag = f"{{{_NAMESPACE}}}mo"
            element.attrib.update(_OPERATORS[element.text])
        if name == "msup" and element[1].text == _PRIME:  # the sign itself is raised already
            element.tag = f"{{{_NAMESPACE}}}mrow"
    return ElementTree.tostring(root, encoding="unicode")

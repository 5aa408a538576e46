"""The colours of algorithms: the same in every picture and on the page, no two alike in one.

Registered algorithms have colours of their own. Everybody else's take from what is left over: a
name asks for a place that depends on the name alone, and takes the next free one where another name
of the same picture is there already. When all colours are taken they come again with other dashes.
"""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

# Okabe and Ito's palette, which the colour-blind can tell apart, and some more in its manner. Every
# one has a contrast of at least 3:1 on white, as thin lines need it: orange, sky blue and yellow
# are darker than theirs.
_OURS = {
    "vanilla-primal-dual": "#555555",
    "regularized-primal-dual": "#CC79A7",
    "vanilla-dual": "#0072B2",
    "regularized-dual": "#009E73",
    "replanning": "#D55E00",
    "posterior-sampling": "#B97F00",
    "optimistic-planning": "#6A3D9A",
}
# What others are compared with: told apart from what it is compared with without colours, too.
_BASELINES = ("vanilla-primal-dual", "vanilla-dual")
# Those of others share these colours, and are told apart from ours by their dashes: each family
# of algorithms has one.
_FIELD = {
    "dash": ("opt-lp", "opt-lp-bonus", "dope", "opt-pess-lp", "safe-psrl"),  # they plan
    "dot": ("opt-dual", "opt-primal-dual", "uopt-rpgpd", "flexdome", "opt-pess-primal-dual"),
    "dashdot": ("opt-aug", "opse", "ghosh", "crpo", "triple-q", "s-ops"),
}
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
"""As Plotly calls them."""
ALGORITHMS = {
    name: (colour, "longdash" if name in _BASELINES else "solid") for name, colour in _OURS.items()
} | {
    name: (colour, dash)
    for dash, names in _FIELD.items()
    for name, colour in zip(names, _OURS.values(), strict=False)
}
"""The registered algorithms' colours and dashes; a test compares with the registry."""

_OTHERS = ("#000000", "#00868B", "#7A7A00", "#A6192E", "#7B4A2A")

# The same on a dark ground: what would vanish there is lighter.
_ON_DARK = {
    "#555555": "#B0B0B0",
    "#CC79A7": "#E79BC6",
    "#0072B2": "#56B4E9",
    "#009E73": "#2FC79B",
    "#D55E00": "#FF8A3D",
    "#B97F00": "#E6B43C",
    "#6A3D9A": "#A98BE0",
    "#000000": "#F0F0F0",
    "#00868B": "#3DD9E0",
    "#7A7A00": "#C8C83C",
    "#A6192E": "#F2637E",
    "#7B4A2A": "#B98A68",
}


class Pen(NamedTuple):
    """How an algorithm is drawn.

    Attributes:
        colour: on white.
        on_dark: the same on a dark ground.
        dash: one of `DASHES`.
    """

    colour: str
    on_dark: str
    dash: str


def pens(names: Iterable[str]) -> dict[str, Pen]:
    """Give each algorithm of a picture its pen; no two are the same up to 25 unregistered ones.

    Examples:
        >>> from cmdpax.figures.colours import pens
        >>> found = pens(["mine:first", "mine:second", "replanning"])
        >>> found["replanning"].colour, len({pen[::2] for pen in found.values()})
        ('#D55E00', 3)
    """
    wanted = list(dict.fromkeys(names))
    chosen = {name: ALGORITHMS[name] for name in wanted if name in ALGORITHMS}
    for name in sorted(set(wanted) - set(chosen)):
        place = _place(name)
        colours = _OTHERS[place:] + _OTHERS[:place]
        order = [(colour, dash) for dash in DASHES for colour in colours]
        chosen[name] = next((one for one in order if one not in chosen.values()), order[0])
    return {
        name: Pen(colour, _ON_DARK[colour], dash)
        for name, (colour, dash) in ((name, chosen[name]) for name in wanted)
    }


def _place(name: str) -> int:
    """Where a name asks first: the same on every machine, other than `hash`."""
    return hashlib.sha256(name.encode()).digest()[0] % len(_OTHERS)


def line_style(dash: str) -> str | tuple[int, tuple[int, ...]]:
    """Give matplotlib's name of a dash."""
    styles: dict[str, str | tuple[int, tuple[int, ...]]] = {
        "solid": "-",
        "dash": "--",
        "dot": ":",
        "dashdot": "-.",
        "longdash": (0, (9, 3)),
    }
    return styles[dash]

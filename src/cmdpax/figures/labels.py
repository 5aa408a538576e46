"""What pictures write at their axes: names, units and bounds in the words of a model."""

from cmdpax.model.words import Words


def bounded(words: Words, constraint: int, bound: float) -> str:
    """Name a constraint with its bound, such as "energy [kWh], at most 80"."""
    return f"{words.label(1 + constraint)}, {words.sense(constraint)} {bound:.6g}"


def price(words: Words, constraint: int) -> str:
    """Name a multiplier with its unit, such as "multiplier of energy [EUR per kWh]"."""
    parts = (words.unit(0), words.unit(1 + constraint))
    unit = f" [{parts[0] or '1'} per {parts[1] or 'unit'}]" if any(parts) else ""
    name = words.constraint(constraint)
    return f"multiplier of {name}{unit}"


def plain_text(text: str) -> str:
    """Keep matplotlib from reading a name's dollar signs as mathematics."""
    return text.replace("$", r"\$")

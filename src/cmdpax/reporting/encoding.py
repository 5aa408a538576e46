"""Curves as text that a browser decodes in a moment.

A block is a table of T columns: the episodes, then the rows of numbers.

1. Numbers become whole numbers of 25 bits: those of single precision, rounded to 16 binary digits
   after the first (a relative error of 2⁻¹⁷). Half widths keep 10 digits, and the others are 0.
   Episodes are whole numbers already.
2. Along a row every number but the first is replaced by the difference to the one before, modulo
   2³², and differences d by 2d or -2d - 1 ("zigzag"): small ones of either sign have leading zeros.
3. The lowest bytes of all numbers come first, then the second ones, and so on: bytes that are alike
   stand together.
4. zlib, then base64.
"""

import base64
import math
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

_FINE, _COARSE = 16, 10  # how many of the 23 binary digits after the first stay
_LARGEST = np.float32(3.4e38)  # below what would be rounded to infinity
_LEVEL = 9


def encode(episodes: np.ndarray, rows: np.ndarray, coarse: Sequence[int] = ()) -> str:
    """Encode a block; NaN stays NaN.

    Args:
        episodes: the episode of every column, `[T]`, below 2³².
        rows: the numbers, `[N, T]`.
        coarse: rows for which three decimal digits are enough.
    """
    whole = _whole(rows, _FINE)
    whole[list(coarse)] = _whole(rows[list(coarse)], _COARSE)
    table = np.vstack([episodes.astype(np.uint32)[None], whole])
    before = np.concatenate([np.zeros_like(table[:, :1]), table[:, :-1]], axis=1)
    differences = (table - before).view(np.int32)
    zigzag = ((differences << 1) ^ (differences >> 31)).view(np.uint32)
    planes = np.ascontiguousarray(zigzag.astype("<u4")).view(np.uint8).reshape(-1, 4).T
    return base64.b64encode(zlib.compress(planes.tobytes(), _LEVEL)).decode("ascii")


def _whole(numbers: np.ndarray, digits: int) -> np.ndarray:
    """Round single-precision numbers to their upper 25 bits."""
    bits = np.clip(numbers, -_LARGEST, _LARGEST).astype(np.float32).view(np.uint32)
    dropped = np.uint32(23 - digits)
    rounded_bits = (bits + (np.uint32(1) << (dropped - np.uint32(1)))) >> dropped
    return np.asarray(rounded_bits << np.uint32(_FINE - digits), dtype=np.uint32)


def rounded(number: float | None) -> float | None:
    """Round a number for JSON to seven significant digits; it is null where it is not finite."""
    return None if number is None or not math.isfinite(number) else float(f"{number:.7g}")


def all_rounded(numbers: Iterable[float]) -> list[float | None]:
    """Round numbers for JSON."""
    return [rounded(number) for number in numbers]


def plain(content: Any) -> Any:
    """Copy lists and dicts, with floats rounded and only text that can be written."""
    if isinstance(content, dict):
        return {name: plain(entry) for name, entry in content.items()}
    if isinstance(content, list):
        return [plain(entry) for entry in content]
    if isinstance(content, str):  # names of files need not be Unicode
        return content.encode("utf-8", "replace").decode("utf-8")
    return rounded(content) if isinstance(content, float) else content

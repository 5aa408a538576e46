"""NumPy arrays and the headers of `.npy` files, changed into what nobody would store."""

import io
import struct
import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

_DTYPES = (
    *("float16", "float32", ">f8", "longdouble", "complex128", "int8", "uint64", ">i4", "bool"),
    *("datetime64[s]", "timedelta64[D]", "U3", "S3", "V5"),
)
_NUMBERS = (np.nan, np.inf, -np.inf, -0.0, -1.0, 2.0, 1e308, -1e308, 5e-324, 1 + 1e-7, 2.0**63)
_HEADERS = (
    "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 400 + ",), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (True,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1.0,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 99999999999), }",
    "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<U999999999', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '|V2147483647', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': [('a', '<f8'), ('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
    "{'descr': ('<f8', (" + "9," * 40 + ")), 'fortran_order': False, 'shape': (1,), }",
    "{'descr': " + "[" * 200 + "]" * 200 + ", 'fortran_order': False, 'shape': (1,), }",
    "{'descr': " + "(" * 3000 + ")" * 3000 + ", 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f8', 'shape': (1,), }",
    "{'descr': '<f8', 'fortran_order': 1, 'shape': (1,), 'more': 2}",
    "{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '\\ud800', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f8\\x00', 'fortran_order': False, 'shape': (1,), }",
    "\x00" * 64,
    "-" * 3000 + "1",
    "",
)


def read(data: bytes) -> np.ndarray:
    """The array of a `.npy` file, without pickled objects."""
    return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)


def write(array: Any) -> bytes:
    """A `.npy` file; arrays of objects are pickled, as an attacker would."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.lib.format.write_array(file, np.asarray(array), allow_pickle=True)
    return file.getvalue()


def any_array(rng: Random) -> np.ndarray:
    """An array of some type and shape."""
    shape = rng.choice(((), (0,), (1,), (3,), (2, 2), (1, 3, 2), (3, 3, 2, 3), (1,) * 30))
    return np.full(shape, rng.choice(_NUMBERS))


def mutate(rng: Random, data: bytes) -> bytes:
    """A `.npy` file with another array, or a header that is not true."""
    try:
        array = read(data)
    except (ValueError, SyntaxError, EOFError, TypeError):
        return data
    if rng.random() < 0.3:
        return _headed(rng, data, array)
    return write(changed(rng, array))


def changed(rng: Random, array: np.ndarray) -> Any:
    """An array like this one, but for its type, its shape or some of its numbers."""
    return rng.choice(_WAYS)(rng, array)


def _other_type(rng: Random, array: np.ndarray) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return array.astype(rng.choice(_DTYPES))
    except (ValueError, TypeError):
        return array.astype(str)


def _objects(rng: Random, array: np.ndarray) -> Any:
    return np.array([None, {}, print, array.tolist()], dtype=object)


def _structured(rng: Random, array: np.ndarray) -> Any:
    return np.zeros(array.shape, [("a", "<f8"), ("b", "<i4", (2,))])


def _number(rng: Random, array: np.ndarray) -> Any:
    """One entry, or all of them."""
    if array.dtype.kind not in "fiub" or not array.size:
        return any_array(rng)
    result = array.astype(float) if array.dtype.kind != "f" or rng.random() < 0.1 else array.copy()
    places = slice(None) if rng.random() < 0.2 else rng.randrange(array.size)
    result.reshape(-1)[places] = rng.choice(_NUMBERS)
    if array.dtype.kind in "iu" and np.isfinite(result).all() and (abs(result) < 2**62).all():
        return result.astype(array.dtype)
    return result


def _integers(rng: Random, array: np.ndarray) -> Any:
    if not array.size:
        return any_array(rng)
    result = np.zeros(array.shape, np.int64)
    result.reshape(-1)[rng.randrange(array.size)] = rng.choice((-1, 1, 2**31, -(2**63), 99))
    return result


def _reshaped(rng: Random, array: np.ndarray) -> Any:
    ways: tuple[Callable[[], Any], ...] = (
        lambda: array.reshape(-1),
        lambda: array[None],
        lambda: array[..., None],
        lambda: array.T,
        lambda: np.broadcast_to(array, (2, *array.shape)),
        lambda: np.concatenate([array, array]) if array.ndim else array,
        lambda: array[:0] if array.ndim else array,
        lambda: array[..., :1] if array.ndim else array,
        lambda: np.repeat(array, 7, axis=-1) if array.ndim else array,
        lambda: np.zeros((0, 99999), array.dtype),
    )
    return rng.choice(ways)()


def _any(rng: Random, array: np.ndarray) -> Any:
    return any_array(rng)


_WAYS = (
    *(_other_type, _other_type, _objects, _structured),
    *(_number, _number, _number, _integers, _reshaped, _reshaped, _any),
)


def _headed(rng: Random, data: bytes, array: np.ndarray) -> bytes:
    """The same numbers after another header, of any version."""
    text = rng.choice(_HEADERS).encode("latin-1") + b"\n"
    version = rng.choice((1, 1, 1, 2, 3, 0, 9))
    size = struct.pack("<H" if version == 1 else "<I", len(text) % 2**16)
    if rng.random() < 0.1:
        size = b"\xff" * len(size)
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + array.tobytes()

"""The states of an environment that are found by trying it, told apart by what is observed."""

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from cmdpax.checks import whole_number
from cmdpax.errors import ParameterError, cut, shown

_PLAIN_ENTRIES = 32  # of an array that becomes a tuple, the more readable key
_EXACT = 2**53  # the whole numbers up to here are doubles
_NAMED_ENTRIES = 6  # of a tuple that makes a name


class FoundStates:
    """Turns observations into the states 0 … S - 1 of an environment that was tried out.

    Where observations are whole numbers 0 … n - 1 (of a Discrete space, or of an encoder with
    `num_states`), they are the states. Otherwise states are numbered in the order in which they
    were found, and observations may be anything made of numbers, texts, arrays, tuples and dicts.

    Attributes:
        num_states: S.

    Examples:
        >>> from cmdpax.gymnasium.found_states import FoundStates
        >>> found = FoundStates(None, None, 10)
        >>> [found.find({"place": [row, 0]}) for row in (2, 5, 2)]
        [0, 1, 0]
        >>> found({"place": [5, 0]}), found.num_states
        (1, 2)
    """

    def __init__(self, env: Any, encoder: Callable[[Any], Any] | None, most: int) -> None:
        """Look for numbers.

        Args:
            env: the environment.
            encoder: the user's, from observations to what tells states apart.
            most: how many states there may be.
        """
        space = getattr(env, "observation_space", None)
        self._encoder, self._most = encoder, most
        self._first = 0
        count = getattr(encoder, "num_states", None)
        if encoder is None and isinstance(space, Discrete):
            count, self._first = int(space.n), int(space.start)
        self.numbered = count is not None and count <= most
        self.states: list[Any] = list(range(count or 0)) if self.numbered else []
        self._places: dict[Hashable, int] = {}

    @property
    def num_states(self) -> int:
        """S, as far as states are known."""
        return len(self.states)

    def __call__(self, observation: Any) -> int:
        """The state of an observation; an error where it was not met."""
        place = self.known(observation)
        if place is None:
            raise ParameterError(
                f"the observation {shown(observation)} was not met when the environment was tried "
                "out; it may come from another map or start (give a seed or more resets=), or have "
                "been too rare (give more samples=)."
            )
        return place

    def known(self, observation: Any) -> int | None:
        """The state of an observation; None where it was not met."""
        value = self._value(observation)
        return self._index(value) if self.numbered else self._places.get(frozen(value))

    def find(self, observation: Any) -> int:
        """The state of an observation, which may be new."""
        value = self._value(observation)
        if self.numbered:
            return self._index(value)
        key = frozen(value)
        place = self._places.setdefault(key, len(self.states))
        if place == len(self.states):
            if place >= self._most:
                raise ParameterError(
                    f"more than {self._most} states were found, such as {shown(value)}; give "
                    "max_states= if there are more, or an encoder= that keeps what matters, if "
                    "observations have something that grows, such as a time or a score."
                )
            self.states.append(copy.deepcopy(value))  # some environments change what they show
        return place

    def names(self) -> list[str] | None:
        """A name for each state, if states are short; numbers need none."""
        if self.numbered:
            return None
        keys = list(self._places)
        if not all(_is_short(key) for key in keys):
            return None
        names = [key if isinstance(key, str) else str(key) for key in keys]
        return names if len(set(names)) == len(names) and all(map(str.strip, names)) else None

    def _value(self, observation: Any) -> Any:
        return observation if self._encoder is None else self._encoder(observation)

    def _index(self, value: Any) -> int:
        array = np.asarray(value)
        number = whole_number(array.item()) if array.size == 1 else None
        if number is None or not 0 <= number - self._first < len(self.states):
            last = self._first + len(self.states) - 1
            raise ParameterError(
                f"{'a state' if self._encoder else 'the observation'} is {shown(value)}, it must "
                f"be one of {self._first} … {last}."
            )
        return number - self._first


def _fits_doubles(array: np.ndarray) -> bool:
    """Whether its numbers are doubles, or whole numbers that doubles hold exactly."""
    if array.dtype.kind in "iu":
        return bool(np.all(array <= _EXACT) and np.all(array >= -_EXACT))
    return array.dtype.kind in "bf"


def frozen(value: Any) -> Hashable:
    """A key: equal observations have equal ones, whatever the types of their numbers."""
    if isinstance(value, np.ndarray):
        if value.size <= _PLAIN_ENTRIES or not _fits_doubles(value):
            return frozen(value.tolist())
        # Adding 0 turns -0.0 into 0.0: equal numbers, equal bytes.
        return value.shape, np.ascontiguousarray(value.astype("<f8") + 0).tobytes()
    if isinstance(value, np.generic):
        return frozen(value.item())
    if isinstance(value, Mapping):
        entries = sorted(value.items(), key=lambda entry: str(entry[0]))
        return tuple((frozen(name), frozen(entry)) for name, entry in entries)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(frozen(entry) for entry in value)
    if isinstance(value, float):
        return value + 0.0
    try:
        hash(value)
    except TypeError:
        raise ParameterError(
            f"the observation has {cut(shown(value), 60)}, of the type {type(value).__name__}, "
            "which cannot be compared; give encoder=, a function that turns observations into "
            "numbers, texts or tuples of these."
        ) from None
    return value


def _is_short(key: Hashable) -> bool:
    entries = key if isinstance(key, tuple) else (key,)
    plain = all(isinstance(entry, bool | int | float | str) for entry in entries)
    return plain and 0 < len(entries) <= _NAMED_ENTRIES and len(str(key)) <= 40

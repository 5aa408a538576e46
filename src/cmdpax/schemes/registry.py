"""The registered schemes, and how a scheme is found: by name, or as it is."""

from typing import Any, TypeAlias

from cmdpax.checks import check_choice
from cmdpax.schemes.known import SCHEMES
from cmdpax.schemes.scheme import Scheme

Named: TypeAlias = str | Scheme
"""A registered name, or a scheme of one's own."""

_BY_NAME = {scheme.name: scheme for scheme in SCHEMES}


def scheme_names() -> list[str]:
    """The names that `iterate` knows, sorted.

    Examples:
        >>> import cmdpax
        >>> cmdpax.scheme_names()[:3]
        ['accelerated-dual', 'augmented-lagrangian', 'crpo']
    """
    return sorted(_BY_NAME)


def as_scheme(given: Any) -> Scheme:
    """A registered scheme by its name, or the user's own.

    Raises:
        ParameterError: there is none.
    """
    if isinstance(given, Scheme):
        return given
    check_choice("scheme", given, tuple(scheme_names()))
    return _BY_NAME[given]

"""What an algorithm and a scheme share: a name, and a typed record that its user fills in."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cmdpax.errors import ParameterError, nearest_name
from cmdpax.schemes.parameters import Parameter, choose


class HasParameters:
    """The parameters of whatever has a name, a record of parameters and a check of them."""

    name: str
    record: Any
    parameters: tuple[Parameter, ...]
    check: Callable[[Any, int], None] | None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    def choose(
        self, given: Mapping[str, Any], num_episodes: int, others: Iterable[str] = ()
    ) -> Any:
        """The record of what the user gave and of the defaults, checked.

        Args:
            given: by name; None stands for the default.
            num_episodes: K, or the most that there can be.
            others: names that are known where parameters are given, for the hint.

        Raises:
            ParameterError: a name is unknown, or a value is impossible.
        """
        for name in given:
            if name not in self.names:
                hint = nearest_name(name, {*self.names, *others})
                raise ParameterError(f"{self.name} has no parameter {name!r}; {hint}.")
        chosen = choose(self.record, self.parameters, given, num_episodes)
        if self.check is not None:
            self.check(chosen, num_episodes)
        return chosen

    def describe(self, chosen: Any) -> dict[str, Any]:
        """A record as JSON holds it."""
        return {one.name: one.plain(getattr(chosen, one.name)) for one in self.parameters}

    def restore(self, described: Mapping[str, Any], num_episodes: int) -> Any:
        """The record that `describe` wrote down, checked anew."""
        given = {}
        for one in self.parameters:
            if one.name in described:
                given[one.name] = one.restore(described[one.name], num_episodes)
            elif not one.added:
                raise ParameterError(
                    f"{self.name} has the parameter {one.name!r}, which is missing."
                )
        return self.choose(given, num_episodes)

    def numbers(self, chosen: Any) -> dict[str, Any]:
        """The part of a record that is data: numbers and schedules."""
        return {
            one.name: getattr(chosen, one.name) for one in self.parameters if not one.is_compiled_in
        }

    def choices(self, chosen: Any) -> tuple[tuple[str, Any], ...]:
        """The part of a record that is compiled in."""
        return tuple(
            (one.name, getattr(chosen, one.name)) for one in self.parameters if one.is_compiled_in
        )

    def lengths(self, chosen: Any) -> tuple[int, ...]:
        """How many numbers each list of them has: arrays of other shapes need another program."""
        return tuple(
            len(getattr(chosen, one.name)) for one in self.parameters if one.kind == "numbers"
        )

    def assemble(self, numbers: Mapping[str, Any], choices: tuple[tuple[str, Any], ...]) -> Any:
        """The record of both parts, of which the numbers may be traced."""
        return self.record(**numbers, **dict(choices))

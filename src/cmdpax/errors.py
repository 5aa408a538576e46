"""The errors that cmdpax raises.

    CmdpaxError
    ├── ModelError           arrays that do not describe a CMDP, or a policy
    ├── ParameterError       an argument that is out of range or has an unknown name
    ├── LearnerError         a learner that broke its contract, or whose numbers are not numbers
    ├── FileError            a file that cannot be read or written
    ├── MissingPackageError  a package that only some functions need is not installed
    ├── OrderError           calls that an agent expects in another order
    ├── ClusterError         there is no cluster, or not any more
    ├── SolverError          planning cannot tell whether a model is feasible
    ├── SweepError           some runs of a sweep failed
    ├── InfeasibleError      no policy meets the constraints
    └── InsufficientDataError  a log supports no policy that is safe enough

Every message is one sentence (or two) that names the thing, the value and the fix.
"""

import difflib
from collections.abc import Iterable
from typing import Any


class CmdpaxError(Exception):
    """Base class of everything that cmdpax raises on purpose."""

    def __str__(self) -> str:
        """The sentence in one line, whatever the names and values in it hold."""
        return plain(super().__str__())


class ModelError(CmdpaxError, ValueError):
    """Arrays that do not describe a CMDP, or a policy of one."""


class ParameterError(CmdpaxError, ValueError):
    """An argument that is out of range, or a name that does not exist."""


class LearnerError(CmdpaxError, ValueError):
    """A learner returned something that is not a policy, or broke its contract otherwise."""


class FileError(CmdpaxError, OSError):
    """A file that cannot be read or written."""


class MissingPackageError(CmdpaxError, ImportError):
    """A package that only some functions need is not installed."""


class OrderError(CmdpaxError, RuntimeError):
    """Calls that an agent expects in another order."""


class ClusterError(CmdpaxError, ConnectionError):
    """There is no cluster, or not any more."""


class SolverError(CmdpaxError):
    """Planning cannot tell whether a model is feasible."""


class SweepError(CmdpaxError, RuntimeError):
    """Some runs of a sweep failed; the others are done."""

    def __str__(self) -> str:
        """The sentence, and a line for each failure."""
        return "\n".join(plain(line) for line in Exception.__str__(self).split("\n"))


class CmdpaxWarning(UserWarning):
    """Something that is allowed and probably not meant."""


class InfeasibleError(CmdpaxError):
    """No policy meets the constraints.

    Attributes:
        slater_gap: Ξ = max_π min_i (V_{u_i}^π - c_i), here negative.
        worst_constraint: the index i that limits Ξ.
        advice: what to change, and by how much, in the user's words.
    """

    def __init__(self, slater_gap: float, worst_constraint: int, advice: str | None = None) -> None:
        """Compose the sentence from the gap and the constraint that limits it."""
        self.slater_gap = slater_gap
        self.worst_constraint = worst_constraint
        self.advice = advice
        fix = f"constraint {worst_constraint} being the worst; lower thresholds[{worst_constraint}]"
        super().__init__(
            f"the CMDP is infeasible: every policy misses some threshold by at least "
            f"{-slater_gap:.6g} (Slater gap {slater_gap:.6g}), {advice or fix}."
        )

    def __reduce__(self) -> tuple[type["InfeasibleError"], tuple[float, int, str | None]]:
        """Pickle the parts, not the sentence: pools of processes pass errors on."""
        return InfeasibleError, (self.slater_gap, self.worst_constraint, self.advice)


class InsufficientDataError(CmdpaxError):
    """A log supports no policy that meets the constraints with the probability asked for.

    Attributes:
        probability: of meeting all constraints, of the policy that came nearest.
        confidence: what was asked for.
        plan: that policy, as `cmdpax.solve_safely` would return it; not certified.
        advice: which pairs to log, and about how many episodes.
    """

    def __init__(self, probability: float, confidence: float, plan: Any, advice: Any) -> None:
        """Compose the sentence."""
        self.probability, self.confidence = probability, confidence
        self.plan, self.advice = plan, advice
        super().__init__(
            "the log supports no policy that meets the constraints with probability "
            f"{100 * confidence:.4g} %, the one that came nearest has "
            f"{100 * probability:.4g} %; {advice.sentence}."
        )

    def __reduce__(self) -> tuple[type["InsufficientDataError"], tuple[Any, ...]]:
        """Pickle the parts, not the sentence."""
        return InsufficientDataError, (self.probability, self.confidence, self.plan, self.advice)


def plain(text: str) -> str:
    """Text in one line that cannot steer a terminal: what is not printable is spelled out."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text
    )


def in_line(text: object) -> str:
    """Text with every run of spaces and line breaks made one space."""
    return " ".join(str(text).split())


def cut(text: str, most: int) -> str:
    """A text of at most about so many characters: its beginning, and a little of its end."""
    return text if len(text) <= most else f"{text[: most * 3 // 4]}…{text[-most // 5 :]}"


def shown(value: object) -> str:
    """A value for a sentence: its `repr`, in a line of at most some eighty characters."""
    try:
        text = repr(value)
    except Exception:  # an integer of more than 4,300 digits has none, nor may a user's object
        text = f"a {type(value).__name__} that cannot be shown"
    return cut(in_line(text), 80)


def nearest_name(name: object, known: Iterable[str]) -> str:
    """A hint for an unknown name: the nearest one, and all of them."""
    names = sorted(known)
    text = name if isinstance(name, str) else shown(name)
    close = difflib.get_close_matches(text, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}known: {', '.join(names) if names else 'none'}"

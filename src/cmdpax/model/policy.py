"""A policy: an array that can show itself, and be written to a file and read from it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmdpax.errors import FileError, ModelError, ParameterError
from cmdpax.model import policy_files
from cmdpax.model.arrays import ArrayLike, frozen
from cmdpax.model.cmdp import CMDP
from cmdpax.model.evaluation import evaluate
from cmdpax.model.policy_files import Content
from cmdpax.model.policy_table import make_table, random_places
from cmdpax.model.validation import check_policy, validate, validate_policy
from cmdpax.model.words import PLAIN, Words
from cmdpax.storage.writing import write_text

if TYPE_CHECKING:
    import polars


class Policy(np.ndarray[tuple[int, int, int], np.dtype[np.float64]]):
    """π_h(a | s), a read-only array of float64 `[H, S, A]` with names, which prints as a table.

    It goes wherever an array goes. What is computed from it, its parts and its copies are plain
    arrays: `np.array(policy)` is one that can be changed.

    `cmdpax.Policy(array, cmdp)` makes one from any array `[H, S, A]`, or `[1, S, A]` if it is the
    same at every step. The model checks it, names its states and actions, and tells how often
    they are reached; without a model, `cmdpax.Policy(array)`, a policy has only its numbers.

    Examples:
        >>> import cmdpax
        >>> cmdp = cmdpax.environments.make("ring").replace(
        ...     state_names=["a", "b", "c"], action_names=["stay", "move"]
        ... )
        >>> policy = cmdpax.Policy([[[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]], cmdp)
        >>> print(policy)
        Policy(H=6, S=3, A=2, random in 6 places)
        state  action                     reached
        a      move                   up to 100 %
        b      stay 50 %, move 50 %   up to 100 %
        c      stay                  up to 93.8 %
        >>> policy[0, 1]
        array([0.5, 0.5])
    """

    _content: Content | None

    def __new__(cls, policy: ArrayLike, cmdp: CMDP | None = None) -> "Policy":
        """Check the policy, and evaluate it in the model.

        Args:
            policy: `[H, S, A]`, or `[1, S, A]` for a stationary one if the model is given.
            cmdp: the model, if it is known.

        Raises:
            ModelError: it is not a policy, or not one of this model.
        """
        if cmdp is None:
            return with_content(Content(np.array(check_policy(policy))))
        checked = np.array(validate_policy(validate(cmdp), policy))
        return of_model(cmdp, checked, evaluate(cmdp, checked).occupancy)

    # ------------------------------------------------------------------------------------ an array

    def __array_finalize__(self, origin: Any) -> None:
        """Views and copies, whatever their shape, know nothing; `with_content` tells them."""
        self._content = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute with plain arrays."""
        if "out" in options:
            options["out"] = tuple(_plain(one) for one in options["out"])
        return getattr(ufunc, method)(*(_plain(one) for one in inputs), **options)

    def __getitem__(self, key: Any) -> Any:
        """Parts are plain arrays, or numbers."""
        return np.asarray(self)[key]

    def __copy__(self) -> Any:
        """Nobody can change it, so one is enough."""
        return self if self._content is not None else np.array(self)

    def __deepcopy__(self, memo: Any) -> Any:
        """Nobody can change it, so one is enough."""
        return self.__copy__()

    def __reduce__(self) -> Any:
        """Pickle it with its names; views and copies are plain arrays afterwards."""
        if self._content is None:
            return np.asarray(self).__reduce__()
        return with_content, (self._content,)

    # ------------------------------------------------------------------------------------- a table

    @property
    def words(self) -> Words:
        """The names of states and actions."""
        return PLAIN if self._content is None else self._content.words

    @property
    def reached(self) -> np.ndarray | None:
        """The chance of being in a state at a step, `[H, S]`; None if it is unknown."""
        return None if self._content is None else self._content.reached

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the model; None if it is unknown."""
        return None if self._content is None else self._content.fingerprint

    def __repr__(self) -> str:
        """The sizes, and whether it is random."""
        if self._content is None:
            return repr(np.asarray(self))
        count = int(random_places(np.asarray(self)).sum())
        told = f"random in {count} place{'s' * (count > 1)}" if count else "deterministic"
        return "Policy(H={}, S={}, A={}, {})".format(*self.shape, told)

    def __str__(self) -> str:
        """The table, in at most some forty lines."""
        return str(np.asarray(self)) if self._content is None else self.table()

    def table(self, *, whole: bool = False) -> str:
        """The policy for people: for every state what is done at which steps.

        Successive steps at which the same is decided are one row. "reached" is the chance of being
        in that state at that step, for several steps from the smallest to the largest.

        Args:
            whole: all rows. Otherwise rows that are never reached are left out, and of more than
                36 those that are reached most are shown.
        """
        content = self._told()
        lines = make_table(content.policy, content.words, content.reached, whole=whole)
        return "\n".join([repr(self), *lines])

    def frame(self) -> "polars.DataFrame":
        """A polars frame with a row for every positive probability.

        The columns are step, state, action (names where the model has names, otherwise indices),
        probability, and reached: the chance of being in that state at that step, null if it is
        unknown. `policy.frame().to_pandas()` converts it.
        """
        import polars  # not needed by anything else in the core

        columns = policy_files.columns_of(self._told())
        chances = columns.pop("reached") or [None] * len(columns["step"])
        reached = polars.Series("reached", chances, dtype=polars.Float64)
        return polars.DataFrame({**columns, "reached": reached})

    # --------------------------------------------------------------------------------------- files

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """The rows of `frame` as CSV, in full precision: written to a file, or returned."""
        return _written(path, policy_files.csv_text(self._told()))

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Everything as one JSON object: written to a file, or returned."""
        return _written(path, policy_files.json_text(self._told()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a `.npz`, `.json` or `.csv` file; an existing file is replaced whole."""
        policy_files.write(Path(path), self._told())

    @staticmethod
    def load(path: str | os.PathLike[str], cmdp: CMDP | None = None) -> "Policy":
        """Read one from a file, as `cmdpax.load_policy` does."""
        return load_policy(path, cmdp)

    def _told(self) -> Content:
        """What it says of itself; a view or a copy says no more than its numbers."""
        if self._content is None:
            return Content(check_policy(np.asarray(self)))
        return self._content


def _as_array(name: str) -> Callable[..., Any]:
    """A method of arrays that knows nothing of policies."""
    method = getattr(np.ndarray, name)

    def called(self: Policy, *arguments: Any, **options: Any) -> Any:
        return method(np.asarray(self), *arguments, **options)

    called.__name__ = name
    return called


# Those that no universal function computes; of the others, `T` and the like, remain views.
for _name in (
    *("argmax", "argmin", "argsort", "astype", "copy", "diagonal", "flatten", "nonzero", "ravel"),
    *("repeat", "reshape", "round", "squeeze", "swapaxes", "take", "transpose"),
):
    setattr(Policy, _name, _as_array(_name))


def load_policy(path: str | os.PathLike[str], cmdp: CMDP | None = None) -> Policy:
    """Read a policy from a `.npz`, `.json` or `.csv` file, and check it.

    Args:
        path: the file: of `Policy.save`, or of `cmdpax solve --out`.
        cmdp: the model that it belongs to: gives it names, and tells how often states are reached
            if the file does not. A `.csv` with names needs it.

    Raises:
        FileError: the file cannot be read as one, is too large, or is of another model.
        ModelError: its array is not a policy, or not one of this model.

    Examples:
        >>> import cmdpax, os, tempfile
        >>> policy = cmdpax.solve(cmdpax.environments.make("ring")).policy
        >>> path = os.path.join(tempfile.mkdtemp(), "policy.json")
        >>> policy.save(path)
        >>> bool((cmdpax.load_policy(path) == policy).all())
        True
    """
    path = Path(path)
    if cmdp is not None:
        validate(cmdp)
    try:
        return _loaded(path) if cmdp is None else _loaded_for(path, cmdp)
    except (ModelError, ParameterError) as error:
        raise ModelError(f"{path}: {error}") from None


def _loaded(path: Path) -> Policy:
    content = policy_files.read(path)
    return with_content(content._replace(policy=check_policy(content.policy)))


def _loaded_for(path: Path, cmdp: CMDP) -> Policy:
    names, sizes = _names(cmdp), (cmdp.num_states, cmdp.num_actions)
    content = policy_files.read(path, names, sizes)
    if content.fingerprint is not None and content.fingerprint != cmdp.fingerprint:
        raise FileError(
            f"{path} belongs to the model with the fingerprint {content.fingerprint[:16]}…, not to "
            f"this one, {cmdp.fingerprint[:16]}…; give the model that it was made for."
        )
    checked = validate_policy(cmdp, content.policy)
    if content.reached is None or content.reached.shape != checked.shape[:2]:
        return of_model(cmdp, checked, evaluate(cmdp, checked).occupancy)
    return with_content(Content(checked, names, content.reached, cmdp.fingerprint))


def of_model(cmdp: CMDP, policy: np.ndarray, occupancy: np.ndarray) -> Policy:
    """A policy of a model that is known to be one, with its occupancy; nobody may change it."""
    return with_content(Content(policy, _names(cmdp), occupancy.sum(axis=-1), cmdp.fingerprint))


def with_content(content: Content) -> Policy:
    """A policy that is known to be one; its arrays are frozen."""
    array = frozen(np.ascontiguousarray(content.policy, np.float64))
    reached = None if content.reached is None else frozen(content.reached)
    found = array.view(Policy)
    found._content = content._replace(policy=array, reached=reached)
    return found


def _names(cmdp: CMDP) -> Words:
    """Those words of a model that speak of its policies."""
    return Words(state_names=cmdp.words.state_names, action_names=cmdp.words.action_names)


def _plain(one: Any) -> Any:
    return np.asarray(one) if isinstance(one, Policy) else one


def _written(path: str | os.PathLike[str] | None, text: str) -> str | None:
    if path is None:
        return text
    write_text(Path(path), text)
    return None

"""An agent in a file.

The file holds the declaration, the learner's state, the open episode and the tally; the randomness
of the actions is a function of the seed and the episode's number. It is written aside and renamed,
so that there is always a complete one. The account is in it as text, so that it can be watched
without the learner. Any process may read it; only that of the agent that wrote it first may write.
"""

import dataclasses
import functools
import json
import os
import weakref
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax import version
from cmdpax.errors import CmdpaxError, FileError
from cmdpax.live.accounts import COUNTED, RECENT, AgentAccount, Tally, make_account
from cmdpax.live.declaration import Declaration
from cmdpax.live.episode import Episode, entries_of_waiting, read_waiting
from cmdpax.live.glimpse import entries_of_glimpse, read_glimpse
from cmdpax.live.playing import Playing
from cmdpax.live.record import AgentRecord, Blocks, record_of
from cmdpax.model.policy_forms import baseline_of
from cmdpax.storage.archives import read_npz
from cmdpax.storage.locking import Lock, lock_beside
from cmdpax.storage.paths import DamagedError, require_file
from cmdpax.storage.texts import parse_json
from cmdpax.storage.trees import leaves_of, read_leaves, restore_tree, write_leaves
from cmdpax.storage.writing import remove_left_behind, require_target, write_atomically

FORMAT = 4
_READ = (2, 3, FORMAT)
"""In the second, a declaration has hyperparameters; before the fourth, no episodes wait."""
_OTHERWISE = "load it with the version that wrote it, or feed your log to a new agent"
_OF_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, OverflowError, CmdpaxError)
_TALLIED = ("mean", "squares", "missed", "recent", "always")
_BLOCKS = "blocks_"


class Position(NamedTuple):
    """Where an agent stands, which is what a file holds.

    It is replaced as a whole, so that no interruption leaves half of it.
    """

    declared: Declaration
    state: Any  # the learner's; from a file, its leaves
    tally: Tally
    episode: Episode  # open or coming; from a file, without policy and draws
    playing: Playing = Playing()
    inputs: Any = None  # what makes the learner; it follows from the declaration
    seconds: float = 0.0  # what the last plan took; it is not kept in files
    waiting: tuple[Episode, ...] = ()  # in the tally, but the learner has not seen them

    @property
    def learned(self) -> int:
        """How many episodes the learner has seen."""
        return self.tally.learned - len(self.waiting)

    @property
    def account(self) -> AgentAccount:
        """What was observed, and what the learner believes."""
        coming = self.episode
        found = make_account(self.declared, self.tally, coming.optimistic, coming.multipliers)
        return dataclasses.replace(found, playing=self.playing.told(self.declared))

    @property
    def record(self) -> AgentRecord:
        """All episodes that were played, thinned."""
        return record_of(self.tally.blocks, self.tally.episodes, self.declared.words)


class Owned:
    """The files that an agent has written, which no other process may write while it lives."""

    def __init__(self) -> None:
        """Own nothing yet; everything is given back when this object is gone."""
        self._locks: dict[Path, Lock] = {}
        weakref.finalize(self, _release, self._locks)

    def __reduce__(self) -> tuple[type["Owned"], tuple[()]]:
        """A copy of an agent has written nothing yet."""
        return Owned, ()

    def require(self, path: Path) -> None:
        """Own a file, or say that another process does; agents of one process may share it."""
        target = Path(os.path.realpath(require_target(path)))
        held = self._locks.get(target)
        if held is None or not held.is_held():
            clean = functools.partial(remove_left_behind, target)
            self._locks[target] = lock_beside(target, shared=True, at_first=clean)


def _release(locks: dict[Path, Lock]) -> None:
    for lock in locks.values():
        lock.release_from_collector()


def save(path: Path, position: Position) -> None:
    """Write a file, whole or not at all; for its owner."""
    declared, state, tally, episode, playing, *_ = position
    leaves = leaves_of(state)
    head, arrays = declared.to_entries()
    played, held = playing.to_entries()
    content = {
        "format": FORMAT,
        "cmdpax": version.__version__,
        "declaration": head,
        "tally": {name: int(getattr(tally, name)) for name in COUNTED},
        "leaves": len(leaves),
        "playing": played,
        "account": position.account.to_dict(),
    }
    entries: dict[str, Any] = {f"declared_{name}": array for name, array in arrays.items()}
    entries |= {f"tally_{name}": getattr(tally, name) for name in _TALLIED}
    entries |= {_BLOCKS + name: one for name, one in tally.blocks._asdict().items()}
    entries |= {f"playing_{name}": array for name, array in held.items()}
    entries |= episode.to_entries(1 + declared.sizes.num_constraints)
    entries |= entries_of_waiting(position.waiting)
    entries |= entries_of_glimpse(declared, episode)
    entries |= write_leaves("leaf_", leaves)
    text = np.array(json.dumps(content, default=lambda number: number.item()))  # NumPy's numbers
    write_atomically(path, lambda file: np.savez(file, agent=text, **entries))


def read(path: Path) -> Position:
    """What a file holds.

    Raises:
        FileError: the file is damaged, not an agent's, or from another version.
    """
    entries, head = _head(path)
    try:
        arrays = {
            name.removeprefix("declared_"): entry
            for name, entry in entries.items()
            if name.startswith("declared_")
        }
        declared = Declaration.from_entries(head["declaration"], arrays)
        # Earlier files have no sums of this kind: these begin anew.
        entries.setdefault("tally_always", np.zeros((5, 2, len(entries["tally_mean"]))))
        sums = {name: entries[f"tally_{name}"] for name in _TALLIED}
        tally = Tally(**sums, blocks=_blocks(declared, entries), **head["tally"])
        optimistic, multipliers = _believed(tally, head["account"])
        episode = Episode.from_entries(entries)._replace(
            optimistic=optimistic,
            multipliers=multipliers,
            glimpse=read_glimpse(declared, entries),
        )
        waiting = read_waiting(entries)
        if not _is_consistent(declared, tally, episode, waiting):
            raise ValueError("its parts do not fit together")
        state = read_leaves("leaf_", head["leaves"], entries)
        playing = _playing(declared, entries, head)
        return Position(declared, state, tally, episode, playing, waiting=waiting)
    except _OF_DAMAGE:
        raise _damaged(path) from None


def _blocks(declared: Declaration, entries: dict[str, Any]) -> Blocks:
    """The record; that of an earlier file, which has none, begins with the recent episodes."""
    if any(name.startswith(_BLOCKS) for name in entries):
        return Blocks(*(entries[_BLOCKS + name] for name in Blocks._fields))
    return Blocks.of_recent(entries["tally_recent"][-RECENT:], declared)


def _playing(declared: Declaration, entries: dict[str, Any], head: dict[str, Any]) -> Playing:
    """What is played; the first versions played the learner's plan."""
    if "playing" not in head:
        return Playing()
    held = {} if "playing_plan" not in entries else {"plan": entries["playing_plan"]}
    playing = Playing.from_entries(head["playing"], held, declared.sizes.num_constraints)
    if playing.plan is not None:
        policy = baseline_of(playing.plan, declared.sizes, declared.words, declared.available)
        playing = playing._replace(plan=policy)
    return playing


def _believed(tally: Tally, account: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """V̂_u and λ: what the learner believes is all that is taken from the text of an account."""
    if not all(account[name] == getattr(tally, name) for name in COUNTED):
        raise ValueError("an account of other episodes")
    constraints = account["constraints"]
    optimistic = np.array([float(one["optimistic"]) for one in constraints])
    return optimistic, np.array([float(one["multiplier"]) for one in constraints])


def _is_consistent(
    declared: Declaration, tally: Tally, episode: Episode, waiting: tuple[Episode, ...]
) -> bool:
    """Whether the parts of a file belong to one agent."""
    count = declared.sizes.num_constraints
    counts = [getattr(tally, name) for name in COUNTED]
    expected = [
        (tally.recent, "f", (min(tally.episodes, RECENT), 2 + 2 * count)),
        (tally.missed, "i", (count,)),
        (tally.mean, "f", (1 + count,)),
        (tally.squares, "f", (1 + count,)),
        (tally.always, "f", (5, 2, 1 + count)),
    ]
    return (
        all(array.dtype.kind == kind and array.shape == shape for array, kind, shape in expected)
        and all(np.isfinite(array).all() for array, _, _ in expected)
        and all(type(number) is int and number >= 0 for number in counts)
        and bool((tally.missed >= 0).all() and tally.sequence.is_possible(tally.episodes))
        and tally.blocks.is_possible(tally.episodes, tally.cut_short, tally.missed)
        and tally.blocks.num_episodes >= len(tally.recent)
        and tally.cut_short <= tally.episodes <= tally.steps
        and _is_possible(declared, episode)
        and all(one.steps and _is_possible(declared, one) for one in waiting)
        and len(waiting) <= tally.episodes
        and len(episode.multipliers) == count
    )


def _is_possible(declared: Declaration, episode: Episode) -> bool:
    """Whether an episode may have happened as far as it went."""
    count, horizon, num_states, num_actions = declared.sizes
    observed = np.reshape(episode.observed, (-1, 1 + count))
    given = () if episode.action is None else (episode.action,)
    played = zip(episode.states, (*episode.actions, *given), strict=False)
    return (
        all(0 <= state < num_states for state in episode.states)
        and all(0 <= action < num_actions for action in (*episode.actions, *given))
        and len(episode.states) == (episode.steps + 1 if episode.states else 0)
        and episode.steps <= horizon
        and (observed.dtype.kind, observed.shape) == ("f", (episode.steps, 1 + count))
        and bool(np.isfinite(observed).all())
        and all(declared.is_available(step, *pair) for step, pair in enumerate(played))
    )


def restore(path: Path, leaves: list[np.ndarray], shapes: Any) -> Any:
    """The learner's state, in arrays of these shapes."""
    try:
        state = restore_tree(leaves, shapes)
    except ValueError:
        written = _head(path)[1]["cmdpax"]
        if written == version.__version__:
            raise _damaged(path) from None
        raise FileError(
            f"{path} was saved by cmdpax {written}, whose learner kept other numbers than that of "
            f"cmdpax {version.__version__}; {_OTHERWISE}."
        ) from None
    return jax.tree.map(jnp.asarray, state)


def _head(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of a file, and its text, if it is an agent's and of this version."""
    try:
        require_file(path)
    except FileError as error:
        raise FileError(f"{str(error)[:-1]}; give a file that agent.save wrote.") from None
    try:
        entries = read_npz(path)
        head = parse_json(str(entries["agent"]))
        form, written = head["format"], head["cmdpax"]
    except (DamagedError, KeyError, TypeError, ValueError):
        raise _damaged(path) from None
    if form not in _READ:
        raise FileError(
            f"{path} was saved by cmdpax {written} (format {form}), this is cmdpax "
            f"{version.__version__} (formats {_READ[0]} to {FORMAT}); {_OTHERWISE}."
        )
    return entries, head


def _damaged(path: Path) -> FileError:
    return FileError(
        f"{os.fspath(path)} is not a readable file of an agent: it is damaged, cut off or "
        "something else; use another copy."
    )

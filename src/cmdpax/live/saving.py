"""An agent in a file.

The file holds the declaration, the learner's state, the open episode and the tally; the randomness
of the actions is a function of the seed and the episode's number. It is written aside and renamed,
so there is always a whole one. The account stands in it as text, so that it can be watched without
the learner.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cmdpax import version
from cmdpax.errors import CmdpaxError, FileError
from cmdpax.files import read_npz, remove_left_behind, write_atomically
from cmdpax.live.accounts import AgentAccount, Tally
from cmdpax.live.declaration import Declaration
from cmdpax.live.episode import OpenEpisode

FORMAT = 1
_COUNTED = ("episodes", "steps", "cut_short")
_TALLIED = ("mean", "squares", "missed", "recent")


class Saved(NamedTuple):
    """What a file holds."""

    declared: Declaration
    tally: Tally
    episode: OpenEpisode
    leaves: list[np.ndarray]  # of the learner's state
    account: AgentAccount


def save(path: Path, saved: Saved) -> None:
    """Write a file, whole or not at all."""
    declared, tally, episode, leaves, account = saved
    head, arrays = declared.to_entries()
    content = {
        "format": FORMAT,
        "cmdpax": version.__version__,
        "declaration": head,
        "tally": {name: int(getattr(tally, name)) for name in _COUNTED},
        "leaves": len(leaves),
        "account": account.to_dict(),
    }
    entries: dict[str, Any] = {f"declared_{name}": array for name, array in arrays.items()}
    entries |= {f"tally_{name}": getattr(tally, name) for name in _TALLIED}
    entries |= episode.to_entries(1 + declared.sizes.num_constraints)
    entries |= {f"leaf_{index}": leaf for index, leaf in enumerate(leaves)}
    text = np.array(json.dumps(content))
    remove_left_behind(path)
    write_atomically(path, lambda file: np.savez(file, agent=text, **entries))


def read(path: Path) -> Saved:
    """What a file holds.

    Raises:
        FileError: the file is damaged, something else, or of another version.
    """
    entries, head = _head(path)
    try:
        arrays = {
            name.removeprefix("declared_"): entry
            for name, entry in entries.items()
            if name.startswith("declared_")
        }
        return Saved(
            Declaration.from_entries(head["declaration"], arrays),
            Tally(*(entries[f"tally_{name}"] for name in _TALLIED), **head["tally"]),
            OpenEpisode.from_entries(entries),
            [entries[f"leaf_{index}"] for index in range(head["leaves"])],
            AgentAccount.from_dict(head["account"]),
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, CmdpaxError):
        raise _damaged(path) from None


def restore(path: Path, leaves: list[np.ndarray], first: Any) -> Any:
    """The learner's state, in arrays like those of a first one."""
    wanted, structure = jax.tree.flatten(first)
    same = len(leaves) == len(wanted) and all(
        found.shape == leaf.shape and found.dtype == leaf.dtype
        for found, leaf in zip(leaves, wanted, strict=True)
    )
    if not same:
        raise _damaged(path)
    return jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in leaves])


def _head(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of a file, and its text, if it is an agent's and of this version."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise FileError(f"{path} {what}; give a file that agent.save wrote.")
    try:
        entries = read_npz(path)
        head = json.loads(str(entries["agent"]))
        form, written = head["format"], head["cmdpax"]
    except OSError as error:
        if isinstance(error, FileError):
            raise _damaged(path) from None
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (KeyError, TypeError, ValueError):
        raise _damaged(path) from None
    if (form, written) != (FORMAT, version.__version__):
        raise FileError(
            f"{path} was saved by cmdpax {written} (format {form}), this is cmdpax "
            f"{version.__version__} (format {FORMAT}); load it with the version that wrote it, or "
            "feed your log to a new agent."
        )
    return entries, head


def _damaged(path: Path) -> FileError:
    return FileError(
        f"{os.fspath(path)} is not a readable file of an agent: it is damaged, cut off or "
        "something else; use another copy."
    )

"""Folders of earlier versions: what their curves do not say is null, and nothing is signed."""

import json
from pathlib import Path

import polars
import pytest

import cmdpax
from cmdpax.experiments.folder import Folder
from cmdpax.experiments.tables import LATER
from sweep_cases import SMALL, specification

TWO = {"environment": "random", "parameters": SMALL | {"num_constraints": 2, "seed": 1}}
FIRST = specification(cmdps=[TWO], algorithms=[{"name": "vanilla-primal-dual"}])
MORE = FIRST | {"seeds": 3}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> cmdpax.Results:
    return cmdpax.sweep(MORE, tmp_path_factory.mktemp("whole"))


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A folder as an earlier version wrote it."""
    path = tmp_path / "odd [names] *"
    cmdpax.sweep(FIRST, path)
    make_earlier(path)
    return path


def make_earlier(path: Path) -> None:
    """Rewrite all batches without the columns that came later, and take signature and seal away."""
    folder = Folder(path)
    manifest = json.loads(folder.manifest_path.read_bytes())
    del manifest["seal"]
    folder.manifest_path.write_text(json.dumps(manifest))
    (path / ".lock").write_bytes(b"")
    for batch, context in folder.entries().items():
        tables = {
            name: polars.read_parquet(folder.table_path(name, batch), glob=False)
            for name in ("final", "curves")
        }
        tables["curves"] = tables["curves"].drop(LATER)
        folder.write_part(batch, tables, {name: context[name] for name in ("shared", "cmdps")})


def test_what_is_not_there_is_null(earlier: Path, whole: cmdpax.Results) -> None:
    curves = cmdpax.results(earlier).curves.collect()
    assert curves.schema == whole.curves.collect_schema()
    for name in LATER:
        assert curves[name].null_count() == len(curves) == 2 * 5


def test_a_folder_can_be_of_both_kinds(earlier: Path, whole: cmdpax.Results) -> None:
    results = cmdpax.sweep(MORE, earlier)
    order = ("seed", "episode")
    found, expected = (one.curves.sort(*order).collect() for one in (results, whole))
    assert found.schema == expected.schema
    assert found["run"].equals(expected["run"])
    assert found["violation"].to_list() == pytest.approx(expected["violation"].to_list(), abs=1e-9)
    for name in LATER:
        assert found[name].is_null().to_list() == (found["seed"] < 2).to_list()
        new = [frame.filter(seed=2)[name].explode().to_list() for frame in (found, expected)]
        assert len(new[0]) == 5 * 2
        assert new[0] == pytest.approx(new[1], abs=1e-9)

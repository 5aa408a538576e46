"""`cmdpax doctor`: what an issue needs to know, and sentences about what is wrong."""

import json

import pytest

import cmdpax
from cmdpax.cli import doctor


def test_a_sound_installation_is_told_in_one_table(run):
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    for word in (cmdpax.__version__, "jaxlib", "devices", "cache", "solved in"):
        assert word in out


def test_problems_are_sentences_and_the_exit_code(run, monkeypatch, tmp_path):
    (tmp_path / "cmdpax").mkdir()
    (tmp_path / "cmdpax" / "jax").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "ray" else "1.0")
    code, out, err = run("doctor", "--json")
    facts = json.loads(out)
    assert code == 1
    assert facts["cache"] == "failed"
    assert facts["ray"] == "not installed (pip install 'cmdpax[ray]')"
    assert len(facts["problems"]) == 1
    assert str(tmp_path / "cmdpax" / "jax") in err


@pytest.mark.parametrize(
    ("requirement", "name"),
    [("jax>=0.8", "jax"), ("tomli-w>=1.2", "tomli-w"), ("ray<2.61,>=2.52; extra", "ray")],
)
def test_names_of_requirements(requirement, name):
    assert doctor._name(requirement) == name

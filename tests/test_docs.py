"""The documentation tells the truth: its examples run, and print what it says they print.

Three kinds of fenced blocks are used, page by page, in order, in one temporary folder per page:

* `pycon`: `>>>` examples, run as doctests in one namespace;
* `console`: lines that begin with `$ cmdpax` are run, and must exit with 0, or with N where the
  line ends in `# exit code N`; what they print must be what follows, if anything does, up to
  rounding (learning runs through thousands of roundings: to three digits);
* any block with `title="FILE"`: written to that file first.
"""

import doctest
import importlib.util
import math
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import cmdpax
import cmdpax.gymnasium
from cmdpax.cli import main
from cmdpax.cli.output import results
from cmdpax.learners import as_algorithm

ROOT = Path(__file__).parent.parent
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]

_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_EXIT_CODE = re.compile(r"# exit code (\d+)$")
_MEASURED = re.compile(  # differs between machines
    r'((?:seconds|columns|time, about|of it compilation)"?\W+|episodes in |included \(|'
    r"runs done, |runs in \w+, )[\d.,]+(?:e-\d+)?"
)
_HEX = r"(?<![\w.])[0-9a-f]{12,}\b"  # a fingerprint or a part of one, no decimals
_TOKEN = re.compile(_HEX + r"|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|[A-Za-z_]+|[^\w\s]")
_FRAMES = re.compile(r"[\u2500-\u257f]+")  # lines of tables


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def page(request, tmp_path, monkeypatch) -> str:
    """The text of a page, with its files in the working directory."""
    text = request.param.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.syspath_prepend(tmp_path)  # for modules among the files
    for _, details, content in _FENCE.findall(text):
        if title := re.search(r'title="([\w.-]+)"', details):
            Path(title[1]).write_text(content, encoding="utf-8")
    return text


@pytest.mark.whole
def test_python_examples(page, request):
    parts, end = [], 0
    for block in _FENCE.finditer(page):
        if block[1] == "pycon":  # everything else becomes blank lines: line numbers stay
            parts += ["\n" * page.count("\n", end, block.start(3)), block[3]]
            end = block.end(3)
    name = request.node.callspec.id
    test = doctest.DocTestParser().get_doctest("".join(parts), {}, name, name, 0)
    runner = doctest.DocTestRunner(
        verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    report: list[str] = []
    runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


@pytest.mark.whole
def test_console_examples(page, monkeypatch, capsys):
    monkeypatch.setattr(results, "_width", 80)
    for language, _, content in _FENCE.findall(page):
        if language != "console":
            continue
        for example in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
            command, _, expected = example.partition("\n")
            if not command.startswith("cmdpax "):
                continue
            announced = _EXIT_CODE.search(command)
            monkeypatch.setattr(sys, "argv", shlex.split(command, comments=True))
            with pytest.raises(SystemExit) as stopped:
                main()
            printed = capsys.readouterr()
            assert (stopped.value.code or 0) == int(announced[1] if announced else 0), printed.err
            both = (printed.err + printed.out, printed.out + printed.err)
            learned = command.split()[1] in ("learn", "sweep", "compare", "board")
            near = 1e-3 if learned else 1e-8
            assert not expected.strip() or any(agree(expected, text, near) for text in both), (
                f"$ {command}\nexpected:\n{expected}\ngot:\n{both[0]}"
            )


def test_table_of_environments():
    text = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \|((?: [\d., ]+ \|){9})$", text, re.MULTILINE)
    assert [name for name, _ in rows] == cmdpax.environments.names()
    for name, cells in rows:
        cmdp = cmdpax.environments.make(name)
        solution = cmdpax.solve(cmdp)
        free = cmdpax.solve(cmdp.replace(constraint_rewards=[], thresholds=[]))
        num_constraints, horizon, num_states, num_actions = cmdp.sizes
        numbers = [num_states, num_actions, horizon, num_constraints, solution.value, free.value]
        numbers += [*cmdp.bounds, *solution.multipliers, solution.slater_gap]
        told = [float(number) for number in re.findall(r"[\d.]+", cells)]
        assert told == pytest.approx(numbers, abs=1e-6), name


def test_the_api_page_has_every_public_name():
    told = re.findall(r"^::: (\S+)", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    complete = (cmdpax, cmdpax.environments, cmdpax.gymnasium)
    modules = {module.__name__: module for module in complete}
    public = {f"{path}.{name}" for path, module in modules.items() for name in module.__all__}
    documented_by_name = (
        *("board", "figures", "learners", "paper.audit"),
        *("parameters", "schedules", "schemes"),
    )
    for module in documented_by_name:
        public |= {name for name in told if name.startswith(f"cmdpax.{module}.")}
    submodules = {"cmdpax.environments", "cmdpax.parameters", "cmdpax.schedules"}
    assert sorted(told) == sorted(public - submodules - {"cmdpax.__version__"})


def test_the_algorithms_page_quotes_code_that_is_there():
    text = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| line \| in the code \(`(\w+)`\).*\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert len(tables) == 3
    for name, rows in tables:
        (file,) = set(re.findall(rf"^<!-- source: (\S+) {name}\b", text, re.MULTILINE))
        code = load(ROOT / "docs" / "hooks" / "sources.py").source(ROOT / file, name)
        for quoted in re.findall(r"^\|[^|]*\| `([^`]+)` \|", rows, re.MULTILINE):
            assert " ".join(quoted.split()) in " ".join(code.split()), (name, quoted)


def test_code_in_pages():
    sources = load(ROOT / "docs" / "hooks" / "sources.py")
    block = sources.insert("<!-- source: src/cmdpax/learners/dual.py dual.init -->", ROOT)
    assert block.startswith("``` {.python .source title=")
    assert '\ndef init(_: Key[Array, ""]) -> DualState:\n    first' in block
    with pytest.raises(LookupError, match=r"dual\.py has no dual\.gone"):
        sources.insert("<!-- source: src/cmdpax/learners/dual.py dual.gone -->", ROOT)


def test_the_table_of_algorithms_has_every_parameter():
    table = load(ROOT / "docs" / "hooks" / "algorithms.py").on_page_markdown(
        "<!-- table: algorithms -->"
    )
    for name in cmdpax.algorithms():
        anytime = "yes" if as_algorithm(name).anytime else "no"
        assert f"| `{name}` | {anytime} |" in table
    assert table.count("| `max_multiplier` | λ_max | 6 | > 0 | largest multiplier |") == 4
    assert table.count("| `regularization` | τ | 0.02 |") == 2
    assert "<!-- table: algorithms -->" in (ROOT / "docs" / "learning.md").read_text("utf-8")


def test_the_table_of_the_field_says_what_its_learners_need():
    text = (ROOT / "docs" / "field.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \|([^|]+)\|([^|]+)\|([^|]+)\|[^|]+\|$", text, re.MULTILINE)
    assert sorted(row[0] for row in rows) == cmdpax.algorithms()
    for name, _, needs, constraints in rows:
        known = as_algorithm(name)
        assert ("$K$" in needs, "baseline" in needs) == (not known.anytime, known.needs_baseline)
        assert constraints.strip() == str(known.max_constraints or "any")


@pytest.mark.whole
def test_own_algorithm(capsys, monkeypatch):
    path = ROOT / "examples" / "own_algorithm.py"
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 100
    whole = cmdpax.learn
    monkeypatch.setattr(
        cmdpax, "learn", lambda *a, num_episodes, **k: whole(*a, num_episodes=50, **k)
    )
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.startswith("gain 0: strong violation [")


def reader() -> str:
    """The program on the page about policies that plays them without cmdpax."""
    text = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    (program,) = (block[3] for block in _FENCE.finditer(text) if 'title="play.py"' in block[2])
    return program


@pytest.mark.parametrize("named", [False, True])
def test_the_reader_of_policies_plays_them(named, tmp_path):
    assert len(reader().splitlines()) <= 30
    cmdp = cmdpax.environments.make("random").with_arrays()
    if named:
        names = [f"s{index}" for index in reversed(range(5))]
        cmdp = cmdp.replace(state_names=names, action_names=[name.upper() for name in names])
    policy = cmdpax.solve(cmdp).policy
    policy.to_json(tmp_path / "policy.json")
    (tmp_path / "play.py").write_text(reader(), encoding="utf-8")
    module = load(tmp_path / "play.py")
    module.random.seed(1)
    player, count = module.Player(tmp_path / "policy.json"), 400
    for (step, state), _ in np.ndenumerate(policy.max(axis=-1)):
        asked = cmdp.words.state_names[state] if named else state
        drawn = [player.act(step, asked) for _ in range(count)]
        found = [drawn.count(cmdp.words.action_names[a] if named else a) for a in range(5)]
        spread = np.sqrt(policy[step, state] * (1 - policy[step, state]) / count)
        assert (abs(np.array(found) / count - policy[step, state]) <= 5 * spread).all()


@pytest.mark.kills
def test_the_reader_of_policies_needs_nothing_but_python(tmp_path):
    cmdp = cmdpax.environments.make("ring").replace(action_names=["stay", "move"])
    cmdpax.Policy([[[0.0, 1.0]] * 3], cmdp).to_json(tmp_path / "policy.json")
    (tmp_path / "play.py").write_text(reader(), encoding="utf-8")
    alone = [
        sys.executable,
        "-I",
        "-S",
        "play.py",
        "policy.json",
        "2",
        "1",
    ]  # no installed packages
    ended = subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("move\n", "")


@pytest.mark.parametrize(
    "latex",
    [r"\unknown x", r"\frac{1}", "{x", "x & y", r"\begin{aligned} x & y \end{aligned}"],
)
def test_a_formula_that_cannot_be_converted_is_an_error(latex):
    mathematics = load(ROOT / "docs" / "hooks" / "mathematics.py")
    assert "<mfrac>" in mathematics.to_mathml(r"\frac{1}{2}", display=False)
    with pytest.raises((ValueError, SyntaxError)):  # broken XML is a SyntaxError
        mathematics.to_mathml(latex, display=True)


def load(path: Path) -> ModuleType:
    """A file that is no part of a package, such as a hook, as a module."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def agree(expected: str, printed: str, near: float) -> bool:
    """Whether two outputs are the same up to rounding, frames and measured times."""
    pairs = list(zip(_tokens(expected), _tokens(printed), strict=False))
    same_length = len(_tokens(expected)) == len(_tokens(printed))
    return same_length and all(_alike(*pair, near) for pair in pairs)


def _tokens(text: str) -> list[str]:
    text = _FRAMES.sub(" ", _MEASURED.sub(r"\1measured", text))
    return _TOKEN.findall(text)


def _alike(expected: str, printed: str, near: float) -> bool:
    if re.fullmatch(_HEX, expected):
        return expected == printed
    try:
        return math.isclose(float(expected), float(printed), rel_tol=near, abs_tol=near)
    except ValueError:
        return expected == printed

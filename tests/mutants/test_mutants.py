"""The mutation tool: each operator on a small source, what is left alone, and one run from end to end."""

import resource
import textwrap

import pytest

from mutants import coverage_map
from mutants.coverage_map import belonging, key_of, touched
from mutants.operators import OPERATORS, is_sound, mutants_of, sample
from mutants.trial import devised, listed, random_mutants, summary, table
from mutation import ROOT, faults

CASES = [
    ("index-shifted", "y = x[0]", {"y = x[1]"}),
    ("index-shifted", "y = x[-1]", {"y = x[-2]"}),
    ("index-shifted", "y = x[1:, :n]", {"y = x[2:, :n]", "y = x[1:, :n - 1]"}),
    ("index-shifted", "for i in range(a + b): pass", {"for i in range((a + b) - 1): pass"}),
    ("axis-changed", "y = f(x, axis=0)", {"y = f(x, axis=1)"}),
    ("axis-changed", "y = f(x, axis=-1)", {"y = f(x, axis=0)"}),
    ("axis-changed", "y = f(x, axis=(0, 1))", {"y = f(x, axis=(0,))"}),
    ("axis-changed", "y = jnp.sum(x, 0)", {"y = jnp.sum(x, 1)"}),
    ("axis-changed", "y = x.mean(-1)", {"y = x.mean(0)"}),
    ("axis-changed", "y = max(x, 0)", set()),
    ("axis-changed", "y = jnp.sum(x)", set()),
    ("factor-dropped", "y = 0.5 * x", {"y = x"}),
    ("factor-dropped", "y = x / (a + b)", {"y = x"}),
    ("factor-dropped", "y = (a + b) ** 2", {"y = (a + b)"}),
    ("factor-dropped", "y = jnp.sqrt(x)", {"y = x"}),
    ("comparison-turned", "y = a < b", {"y = a <= b", "y = a > b"}),
    ("comparison-turned", "y = a is None", {"y = a is not None"}),
    ("comparison-turned", "y = not a", {"y = a"}),
    ("comparison-turned", "y = a and b", {"y = a"}),
    ("arguments-swapped", "y = f(a, b)", {"y = f(b, a)"}),
    ("arguments-swapped", "y = jnp.maximum(a, b)", set()),
    ("arguments-swapped", "y = jnp.asarray(a, b.dtype)", set()),
    ("keyword-dropped", "y = f(a, b=1, c=2)", {"y = f(a,  c=2)", "y = f(a, b=1)"}),
    ("keyword-dropped", "y = f(b=1)", {"y = f()"}),
    ("stop-gradient-removed", "y = jax.lax.stop_gradient(x)", {"y = x"}),
    ("stop-gradient-removed", "y = tree.map(lax.stop_gradient, x)", {"y = tree.map((lambda x: x), x)"}),
    ("key-reused", "a, b = split(key)", set()),
    ("key-reused", "a, b = jr.split(key)", {"a, b = jr.split(key)[jax.numpy.array([0, 0])]"}),
    (
        "key-reused",
        "x, (a, b, c) = 0, jr.split(key, 3)",
        {f"x, (a, b, c) = 0, jr.split(key, 3)[jax.numpy.array({order})]" for order in ([0, 0, 2], [0, 1, 1])}
        | {"x, (a, b, c) = 0, jax.numpy.broadcast_to(key, 3)"},
    ),
    ("key-reused", "a, *b = jax.random.split(key, n)", {"a, *b = jax.numpy.broadcast_to(key, n)"}),
    ("key-reused", "vmap(f)(jax.random.split(key), x)", {"vmap(f)(jax.numpy.broadcast_to(key, 2), x)"}),
    ("key-reused", "f(keys[0], keys[i])", {"f(keys[0], keys[0])"}),
    ("key-reused", "f(keys[way, level], keys[1:])", {"f(keys[0, level], keys[1:])", "f(keys[way, 0], keys[1:])"}),
    ("key-reused", "k = jax.random.fold_in(key, i)", {"k = key"}),
    (
        "key-reused",
        "fold_in(key, 0) + fold_in(key, 3)",
        {"key + fold_in(key, 3)", "fold_in(key, 0) + key"} | {"fold_in(key, 0) + fold_in(key, 0)"},
    ),
    (
        "key-reused",
        "fold_in(key, a * n + i)",
        {"key", "fold_in(key, a + i)", "fold_in(key, (a * n))", "fold_in(key, i)"},
    ),
    ("key-reused", "fold_in(key, step + 1)", {"key", "fold_in(key, step)"}),
    ("mask-ignored", "y = jnp.where(c, a, b)", {"y = a"}),
    ("mask-ignored", "y = a & b", {"y = a", "y = b"}),
    ("mask-ignored", "y = mask * x", {"y = x"}),
    ("branches-swapped", "y = jnp.where(c, a, b)", {"y = jnp.where(c, b, a)"}),
    ("branches-swapped", "y = a if c else b", {"y = b if c else a"}),
    ("min-for-max", "y = jnp.max(x)", {"y = jnp.min(x)"}),
    ("min-for-max", "y = np.argmin(x)", {"y = np.argmax(x)"}),
    ("mean-for-sum", "y = x.mean()", {"y = x.sum()"}),
    ("mean-for-sum", "y = sum(x)", set()),
    ("state-not-updated", "n += 1", {"pass"}),
    ("state-not-updated", "x = f(x, 1)", {"pass"}),
    ("state-not-updated", "y = x.at[i].set(v)", {"y = x"}),
    ("state-not-updated", "y = x._replace(a=1)", {"y = x"}),
    ("state-not-updated", "y = dataclasses.replace(x, a=1)", {"y = x"}),
    ("state-not-updated", "y = x.replace('a', 'b')", set()),
    ("state-not-updated", "y = eqx.tree_at(f, x, v)", {"y = x"}),
    ("dtype-lowered", "y = f(jnp.float64)", {"y = f(jnp.float32)"}),
    ("dtype-lowered", "y = f(x, 'float64')", {'y = f(x, "float32")'}),
    ("dtype-lowered", "y = f(x, dtype='float64')", {'y = f(x, dtype="float32")'}),
    ("dtype-lowered", "y = 'float64'", set()),
    ("escape-removed", "y = html.escape(x)", {"y = x"}),
    ("sign-changed", "y = a + b", {"y = a - b"}),
    ("sign-changed", "y = -a", {"y = a"}),
    ("sign-changed", "y = 'a' + b", set()),
]


def made(tmp_path, source, operator=None):
    path = tmp_path / "source.py"
    path.write_text(source, encoding="utf-8")
    found = [one for one in mutants_of(path, "source.py") if operator in (None, one.operator)]
    assert all(is_sound(one, source) for one in found)
    return {one.apply(source) for one in found}


@pytest.mark.parametrize(("operator", "source", "expected"), CASES)
def test_what_an_operator_makes(tmp_path, operator, source, expected):
    assert made(tmp_path, source, operator) == expected


def test_every_operator_is_tried():
    assert {operator for operator, *_ in CASES} == set(OPERATORS)


def test_words_and_types_are_left_alone(tmp_path):
    source = '''
        """A text with 2 * 3 in it."""
        __all__ = ["a"] + ["b"]

        def f(x: Float[Array, "n 2"], y: int = 0) -> tuple[int, int]:
            """Says x[0]."""
            z: list[int] = []
            require("f", "x", f"> {y + 1}", x, lambda v: callable(v))
            if callable(x):
                raise ValueError("a" + x[0])
            warnings.warn(f"{x[0]}")
            return z
    '''
    assert made(tmp_path, textwrap.dedent(source)) == set()


def test_the_condition_of_a_requirement_is_no_word(tmp_path):
    assert made(tmp_path, 'require("f", "x", "> 0", x, lambda v: v > 0)') == {
        'require("f", "x", "> 0", x, lambda v: v >= 0)',
        'require("f", "x", "> 0", x, lambda v: v < 0)',
    }


def test_letters_beyond_ascii_do_not_shift_the_place(tmp_path):
    assert made(tmp_path, 'σ = "ξ²"; y = x[0]') == {'σ = "ξ²"; y = x[1]'}


def test_a_seed_gives_the_same_mutants_and_every_operator_its_turn(tmp_path):
    path = tmp_path / "source.py"
    path.write_text("\n".join([f"y{i} = a < b" for i in range(50)] + ["k = fold_in(key, 3)"]))
    every = mutants_of(path)
    assert sample(every, 10, 1) == sample(every, 10, 1) != sample(every, 10, 2)
    assert {one.operator for one in sample(every, 10, 1)} == {"comparison-turned", "key-reused"}
    assert len(sample(every, 1000, 0)) == len(every) == len(set(every)) == 102


def test_all_of_an_operator_in_the_order_of_the_text(tmp_path):
    area = tmp_path / "src" / "toy" / "calc"
    area.mkdir(parents=True)
    (tmp_path / "src" / "toy" / "__init__.py").write_text("")
    (area / "__init__.py").write_text("k = fold_in(key, 3)\ny = x[0]\na = fold_in(key, i)\n")
    every = [(row["line"], row["operator"]) for row in listed(tmp_path, "calc", None, 0, "key-reused")]
    assert every == [(1, "key-reused"), (1, "key-reused"), (3, "key-reused")]
    assert len(listed(tmp_path, "calc", 2, 0, "key-reused")) == 2
    assert [row["line"] for row in listed(tmp_path, "calc", None, 0)] == [1, 1, 2, 3, 3]


def children_seconds() -> float:
    """The CPU seconds of all processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_survivor_and_a_caught_one_from_end_to_end(tmp_path, capsys):
    """`double` is asserted, `shown` only called, `forgotten` not even that."""
    root = tmp_path / "repository"
    area = root / "src" / "toy" / "calc"
    area.mkdir(parents=True)
    (root / "tests" / "calc").mkdir(parents=True)
    (root / "src" / "toy" / "__init__.py").write_text("")
    functions = [f"def {name}(x):\n    return 2 * x\n" for name in ("double", "shown", "forgotten")]
    (area / "__init__.py").write_text("\n\n".join(functions))
    test = "from toy.calc import double, shown\n\n\ndef test_it():\n    shown(1)\n    assert double(2) == 4\n"
    (root / "tests" / "calc" / "test_calc.py").write_text(test)
    (root / "pyproject.toml").write_text("")
    spent = children_seconds()
    outcomes = random_mutants(root, "calc", 10, 0, processes=2, limit=10_000)
    assert {one.line: one.outcome for one in outcomes} == {2: "caught", 6: "SURVIVED", 10: "UNTOUCHED"}
    assert random_mutants(root, "calc", 10, 0, limit=60, budget=-1.0) == []  # minutes that are over
    found = summary("calc", 0, outcomes)
    assert (found["tried"], found["caught"]) == (3, 1)
    by_line = {one.line: one for one in outcomes}
    assert by_line[2].by_test == "tests/calc/test_calc.py::test_it"
    assert "-    return 2 * x\n+    return x\n" in by_line[6].diff
    assert (area / "__init__.py").read_text() == "\n\n".join(functions)  # copies were changed, never the original
    (tmp_path / "calc.json").write_text(__import__("json").dumps(found))
    assert "| calc | 0 | 3 | 1 (33%) | 1 (33%) | 1 (33%) | 2 |" in table([str(tmp_path / "calc.json")])
    assert "measuring what tests/calc/test_calc.py execute" in capsys.readouterr().err
    again = touched(root, "calc", [area / "__init__.py"], "not slow", pytest.fail)  # kept: nothing is measured
    assert again["tests/calc/test_calc.py"]["lines"] == {"src/toy/calc/__init__.py": [1, 2, 5, 6, 9]}
    assert 0 <= again["tests/calc/test_calc.py"]["seconds"] <= children_seconds() - spent
    double, forgotten = (f"def {name}(x):\n    return 2 * x" for name in ("double", "forgotten"))
    row = {"file": "src/toy/calc/__init__.py"}
    rows = [
        row | {"id": name, "replace": text, "by": text.replace("2", "3")}
        for name, text in (("wrong", double), ("unseen", forgotten))
    ]
    tried = {one.operator: one for one in devised(root, rows, processes=2, limit=10_000)}
    assert {name: one.outcome for name, one in tried.items()} == {"wrong": "caught", "unseen": "SURVIVED"}
    assert tried["unseen"].line == 9
    with pytest.raises(SystemExit, match="found 3 times"):
        devised(root, [row | {"id": "anywhere", "replace": "return 2 * x", "by": "return x"}])


def test_all_that_a_map_depends_on_moves_its_key_and_nothing_else_does(tmp_path, monkeypatch):
    files = {
        "src/toy/calc/__init__.py": "x = 1",
        "tests/calc/test_calc.py": "def test_it():\n    pass",
        "tests/calc/test_more.py": "from test_calc import test_it",
        "tests/calc/helper.py": "y = 1",
        "tests/calc/inner/stored.json": "{}",
        "tests/other/shared.py": "z = 1",
        "tests/conftest.py": "",
        "tests/thorough.txt": "",
        "pyproject.toml": "",
    }
    apart = {"tests/other/test_other.py": "", "tests/mutations/calc.toml": "", "tests/calc/__pycache__/helper.pyc": ""}
    for name, text in (files | apart).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    sources = [tmp_path / "src/toy/calc/__init__.py"]

    def key(names=("tests/calc/test_calc.py",), marks="not slow", more=None):
        return key_of(tmp_path, sources, list(names), marks, more or {})

    first = key()
    seen = [first, key(marks="slow"), key(("tests/calc",)), key(more={"AREA": "calc"})]
    for name, text in files.items():
        (tmp_path / name).write_text(f"{text} ")
        seen.append(key())
        (tmp_path / name).write_text(text)
    assert key() == first
    helper = tmp_path / "tests/calc/helper.py"
    seen += [key() for _ in [helper.rename(helper.with_name("renamed.py"))]]
    helper.with_name("renamed.py").rename(helper)
    (tmp_path / "tests/calc/test_calc.py").write_text("def test_it():\n    ")  # a boundary that moves
    (tmp_path / "tests/calc/test_more.py").write_text("passfrom test_calc import test_it")
    seen.append(key())
    for name in ("tests/calc/test_calc.py", "tests/calc/test_more.py"):
        (tmp_path / name).write_text(files[name])
    for name, value in (("RUN", "pass"), ("_installed", lambda: ["jax 0.0"]), ("options", lambda marks: [])):
        with monkeypatch.context() as patch:
            patch.setattr(coverage_map, name, value)
            seen.append(key())
    with monkeypatch.context() as patch:
        patch.setattr(coverage_map.sys, "version", "4.0")
        seen.append(key())
    assert len(set(seen)) == len(seen)
    for name in apart:
        (tmp_path / name).write_text("changed")
    assert key() == first


def test_rows_of_others_are_left_out():
    """What `make test PAPER=` and `AREA=` leave out, mutants do not meet either."""
    told = {"papers/tensor_train_pde": {"PAPER": "tensor-train-pde"}, "pde": {"AREA": "pde"}, "lab": {}, "_data": {}}
    assert {area: belonging(ROOT, area) for area in told} == told


def test_every_planted_fault_fits_its_source_and_names_tests_that_exist():
    """A text that has changed plants nothing, which is else told by the hour that all tables take."""
    rows = faults([])
    files = {row["file"] for row in rows} | {test.partition("::")[0] for row in rows for test in row["tests"]}
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in files if (ROOT / name).is_file()}
    assert not [row["id"] for row in rows if texts[row["file"]].count(row["replace"]) != 1]
    named = {(row["id"], *test.partition("[")[0].split("::")) for row in rows for test in row["tests"] if "::" in test}
    assert not [(fault, name) for fault, file, *_, name in named if f"def {name}(" not in texts.get(file, "")]


def unknown(named, tests):
    """Those that are neither a test nor the name of one with cases."""
    return sorted(set(named) - tests - {test.partition("[")[0] for test in tests})


def test_a_case_that_is_not_there_is_seen():
    assert unknown(["a.py::b", "a.py::b[1]", "a.py::b[2]", "a.py::c"], {"a.py::b[1]"}) == ["a.py::b[2]", "a.py::c"]


def test_planted_faults_name_cases_that_exist(all_tests):
    """What stands in brackets is made while tests are collected, so that only a run of everything knows."""
    missing = unknown([test for row in faults([]) for test in row["tests"] if "::" in test], all_tests)
    assert not missing


def test_planted_faults_name_a_quick_test(quick_tests):
    """Or a file or folder that has one: what only slower tests see, `make test` does not."""
    known = {name[:end] for name in quick_tests for end in ends(name)}
    unseen = [row["id"] for row in faults([]) if known.isdisjoint(row["tests"])]
    assert unseen == [], "\n".join(unseen)


def ends(name: str) -> list[int]:
    """Where the folders, the file, the function and the case that a test's name consists of end."""
    return [*(place for place, letter in enumerate(name) if letter in "/:["), len(name)]


def test_the_thorough_tests_exist(all_tests):
    """A name that nobody bears keeps nothing out of `make test`."""
    listed = set((ROOT / "tests" / "thorough.txt").read_text(encoding="utf-8").splitlines())
    assert listed
    missing = sorted(listed - all_tests)
    assert not missing

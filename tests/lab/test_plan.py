import dataclasses
import os

import pytest

import toys
from laureate.lab.errors import UserError
from laureate.lab.running import executors
from laureate.lab.running.executors import next_cell
from laureate.lab.running.plan import plan, select


def keys(cells):
    return {cell.key for cell in cells}


def test_a_paper_stands_for_all_its_claims_and_a_claim_for_the_arms_it_needs():
    made = toys.paper()
    (whole,) = toys.selections(made)
    assert [claim.name for claim in whole.claims] == ["better", "worse", "which"]
    assert whole.arms() == ("ours", "theirs", "third")
    (one,) = toys.selections(made, "toy/better")
    assert one.arms() == ("ours", "theirs")
    for words in (["toy/which"], ["toy/better", "toy/which"]):
        (question,) = toys.selections(made, *words)
        assert question.arms() == ("ours", "theirs", "third"), "a question is about all arms"


def test_an_experiment_name_stands_for_its_claims_and_nothing_is_selected_twice():
    made = toys.paper()
    (selection,) = toys.selections(made, "toy/toy", "toy/better", "toy")
    assert [claim.name for claim in selection.claims] == ["better", "worse", "which"]


def test_a_slash_asks_for_the_experiment_where_a_claim_has_its_name():
    named = toys.paper(toys.experiment(name="better"))
    for word, wanted in (("toy/better", ["better"]), ("toy/better/", ["better", "worse", "which"])):
        (selection,) = toys.selections(named, word)
        assert [claim.name for claim in selection.claims] == wanted


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Say what to run"),
        (["tyo"], "There is no 'tyo'. Did you mean toy?"),
        (["toy/bettre"], "Did you mean toy/better"),
        (["zzzz"], "There are: toy"),
    ],
)
def test_unknown_words_suggest_the_nearest(words, message):
    made = toys.paper()
    with pytest.raises(UserError, match=message):
        select(words, ["toy"], lambda _: made)


def test_more_seeds_only_add_cells():
    selected = toys.selections(toys.paper())
    few, many = plan(selected, "smoke", seeds=7), plan(selected, "smoke", seeds=23)
    assert keys(few) < keys(many)
    assert len(few) == 3 * 2
    assert len(many) == 3 * 5
    assert all(cell.start % 5 == 0 and cell.count == 5 for cell in many)


def test_another_arm_only_adds_cells():
    made = toys.paper()
    assert keys(plan(toys.selections(made, "toy/better"), "smoke")) < keys(plan(toys.selections(made), "smoke"))


def test_scales_and_problems_are_different_cells():
    selected = toys.selections(toys.paper())
    own = f"{toys.TRIALS}:Bowl"
    cells = [keys(plan(selected, "smoke")), keys(plan(selected, "desk")), keys(plan(selected, "smoke", problem=own))]
    assert len(set.union(*cells)) == sum(map(len, cells))


def test_a_scale_that_is_not_there():
    with pytest.raises(UserError, match=r"no scale 'full'\. It has: smoke, desk"):
        plan(toys.selections(toys.paper()), "full")


@pytest.mark.parametrize(("seeds", "starts"), [(2, [0]), (5, [0]), (6, [0, 5]), (10, [0, 5]), (11, [0, 5, 10])])
def test_every_seed_that_is_asked_for_lies_in_a_block(seeds, starts):
    cells = plan(toys.selections(toys.paper(), "toy/better"), "smoke", seeds)
    assert [cell.start for cell in cells if cell.arm == "ours"] == starts


def test_arms_take_turns_where_a_clock_may_be_read_and_else_share_a_program_one_after_the_other():
    for over_seeds, expected in (
        ("loop", [("ours", 0), ("theirs", 0), ("third", 0), ("ours", 5), ("theirs", 5), ("third", 5)]),
        ("vmap", [("ours", 0), ("ours", 5), ("theirs", 0), ("theirs", 5), ("third", 0), ("third", 5)]),
    ):
        cells = plan(toys.selections(toys.paper(toys.experiment(over_seeds=over_seeds))), "smoke")
        assert [(cell.arm, cell.start) for cell in cells] == expected


# Every field of a cell, changed: what is compiled changes with it, or not. Who runs seeds in a loop compiles none.
PROGRAM = {
    "paper": ("other", False),
    "experiment": ("other", False),
    "arm": ("theirs", False),
    "problem": ("mine.py:bowl", False),
    "scale": ("desk", False),
    "start": (5, False),
    "count": (4, True),
    "trial": ("mine.py:trial", True),
    "problem_reference": ("mine.py:bowl", True),
    "problem_settings": ({"size": 4, "width": 0.5}, True),
    "accepts": ((), False),
    "arm_settings": ({"shift": 0.0, "kind": "b"}, True),
    "scale_settings": ({"draws": 9, "rate": 0.1}, True),
    "over_seeds": ("loop", False),
    "x64": (True, True),
    "compilation": ("thorough", True),
    "fingerprint": ("other", False),
}


def test_cells_share_a_program_where_floats_of_arm_and_scale_differ_and_nothing_else_that_is_compiled():
    changes = {"problem_settings": {"size": 3, "width": 0.5}, "arm_settings": {"shift": 0.0, "kind": "a"}}
    changes |= {"scale_settings": {"draws": 8, "rate": 0.1}}
    cell = dataclasses.replace(plan(toys.selections(toys.paper()), "smoke")[0], **changes)
    assert set(PROGRAM) == {field.name for field in dataclasses.fields(cell)}
    for name, (value, compiles) in PROGRAM.items():
        assert getattr(cell, name) != value
        assert (dataclasses.replace(cell, **{name: value}).program != cell.program) == compiles, name
    floats = {"arm_settings": {"shift": 2.0, "kind": "a"}, "scale_settings": {"draws": 8, "rate": 0.2}}
    assert dataclasses.replace(cell, **floats).program == cell.program
    # A problem's floats may be compiled in, as whatever is no array of it.
    wider = {"size": 3, "width": 0.6}
    assert dataclasses.replace(cell, problem_settings=wider).program != cell.program


def test_a_cell_waits_while_another_worker_compiles_its_program():
    """The first that need not wait; once a program is compiled its cells are taken in their order."""
    first, *others = (
        dataclasses.replace(cell, start=i) for i, cell in enumerate(plan(toys.selections(toys.paper()), "smoke")[:3])
    )
    other = dataclasses.replace(first, start=9, x64=True)
    waiting = [*others, other]
    assert next_cell(waiting, [first], set()) == other
    assert waiting == others
    assert next_cell(waiting, [first, other], set()) is None
    assert next_cell(waiting, [first, other], {other.program}) is None
    assert next_cell(waiting, [first, other], {first.program}) == others[0]
    assert next_cell(waiting, [], set()) == others[1]
    assert next_cell(waiting, [], set()) is None


def test_one_worker_is_this_process_and_more_are_processes_of_one_thread(tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "cores", lambda: 3)
    for name in executors.OF_WORKERS:
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    kinds = [executors.make_executor(workers, tmp_path / "cache" / "xla") for workers in (1, 2, None)]
    assert [type(one) for one in kinds] == [executors.InProcess, executors.ProcessPool, executors.ProcessPool]
    assert [one.workers for one in kinds] == [1, 2, 3]
    assert (tmp_path / "cache" / "xla").is_dir()
    told = {name: os.environ[name] for name in executors.OF_WORKERS}
    assert told == executors.OF_WORKERS | {"OMP_NUM_THREADS": "7"}  # what somebody has set stays

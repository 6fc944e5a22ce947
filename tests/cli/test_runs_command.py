"""``laureate runs``: lists, names, notes, deletes; and a finished command that is repeated adds none."""

import json

import toys
from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store

SMOKE = ("--scale", "smoke", "--workers", "1", "--quiet")


def listed(laureate):
    return json.loads(laureate("runs", "--json").out)


def test_repeating_a_finished_command_adds_no_run(laureate, toy):
    first = json.loads(laureate("run", "toy", *SMOKE, "--json").out)
    again = json.loads(laureate("run", "toy", *SMOKE, "--json").out)
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert again["run"] == first["run"] == 1
    assert again["claims"] == first["claims"]
    assert len(listed(laureate)) == 1
    assert "so none was added" in laureate("run", "toy", *SMOKE).out
    for words in (["toy/better", *SMOKE], ["toy", *SMOKE, "--seeds", "12"], ["toy", *SMOKE, "--fresh"]):
        before = len(listed(laureate))
        laureate("run", *words)
        assert len(listed(laureate)) == before + 1, words
    # Declared otherwise, the same numbers may say something else: that is news.
    changed = toys.experiment(claims=(toys.Claim(**vars(toys.BETTER) | {"margin": 50.0}),))
    toy.paper = toys.paper(changed)
    laureate("run", "toy", *SMOKE)
    assert listed(laureate)[0]["verdicts"]["refuted"] == 1


def test_names_notes_and_deletes(laureate):
    assert "Nothing was run yet" in laureate("runs").out
    laureate("run", "toy/better", *SMOKE)
    laureate("run", "toy", *SMOKE)
    laureate("runs", "1", "--name", "first\x1b[31m try", "--note", "with the old\nlearning rate")
    (second, first) = listed(laureate)
    assert (first["name"], first["note"], second["name"]) == ("first [31m try", "with the old learning rate", "")
    out = laureate("runs").out
    assert "run 1  first [31m try" in out
    assert "note: with the old learning rate" in out
    laureate("runs", "1", "--name", "")
    assert listed(laureate)[1]["name"] == ""
    done = laureate("runs", "1", "--delete", "--yes")
    assert "Run 1 is deleted, and 0 cells" in done.out, "the second run uses them all"
    assert [row["id"] for row in listed(laureate)] == [2]
    again = json.loads(laureate("run", "toy", *SMOKE, "--json").out)
    assert again["cells"]["cached"] == 6
    assert "and 6 cells that only it had" in laureate("runs", "2", "--delete", "--yes").out
    store = Store(store_path())
    assert store.counts() == {"runs": 0, "cells": 0, "observations": 0, "verdicts": 0}
    assert store.complaint(thorough=True) == ""
    store.close()
    assert "There is no run 2" in laureate("runs", "2", "--delete", "--yes").err
    assert laureate("runs", "--name", "x").code == 2


def test_a_run_under_way_is_not_deleted(laureate):
    store = Store(store_path())
    store.start_run("laureate run toy", "smoke", 10, "default", {"machine": "", "versions": {}, "commit": ""})
    assert "Run 1 is under way" in laureate("runs", "1", "--delete", "--yes").err
    store.end_run(1, "interrupted")
    store.close()


def test_the_limit_that_is_named_lists_them_all(laureate):
    store = Store(store_path())
    for _ in range(5):
        store.end_run(store.start_run("laureate run toy", "smoke", 10, "default", {}), "finished")
    store.close()
    for limit in range(1, 6):
        said = laureate("runs", "--limit", str(limit)).out
        assert said.count("finished") == limit
        if limit < 5:
            assert f"{5 - limit} more: --limit 5" in said
        else:
            assert "more" not in said

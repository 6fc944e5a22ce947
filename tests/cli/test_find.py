"""find, import, cite and export papers, as at a shell."""

import csv
import io
import json
from pathlib import Path

from laureate.catalogue import Entry
from laureate.catalogue.library import add
from laureate.lab.judging.results import claims_of
from laureate.lab.records import board_results
from laureate.lab.storing.home import store_path
from laureate.lab.storing.shown import read_shown
from laureate.lab.storing.store import Store

DATA = Path(__file__).parents[1] / "catalogue" / "data"


def test_find(laureate):
    said = laureate("find", "gradients", "through", "a", "long", "unrol").out
    assert "Persistent Evolution Strategies" in " ".join(said.split())[:130]
    assert "Searched: labels (for lables)" in laureate("find", "noisy", "lables").out
    told = json.loads(laureate("find", "fourier neural operator", "--json", "--limit", "2").out)
    assert told["papers"][0]["id"] == "fno"
    assert len(told["papers"]) == 2
    assert told["papers"][0]["runs"] is False
    assert told["papers"][0]["claims"] == []


def test_find_with_filters(laureate):
    told = json.loads(laureate("find", "--venue", "icml", "--limit", "9", "--json").out)
    assert len(told["papers"]) == 5
    by_topic, by_area = (laureate("find", "labels", word, "vision", "--json").out for word in ("--topic", "--area"))
    assert {paper["topic"] for paper in json.loads(by_topic)["papers"]} == {"vision"}
    assert by_area == by_topic  # as older versions called it
    said = laureate("find", "labels", "--topic", "visoin")
    assert said.code == 2
    assert "--topic has no 'visoin'. Did you mean vision?" in said.err
    assert "Say what you are looking for." in laureate("find").err
    said = laureate("find", "noisy labels", "--runs").out
    assert "Nothing found for 'noisy labels' with --runs." in said
    assert "Without the filter:" in said
    said = laureate("find", "xylophonists").out
    assert "Nothing found" in said or "Searched:" in said


def test_import_then_find(laureate, tmp_path):
    # First of all, so that the index is built once for all that is found here.
    (tmp_path / "list.md").write_text("## [Zymurgy for Nets](#)\n\n- Ada Lovelace\n- abstract: Fermented gradients.\n")
    laureate("import", str(tmp_path / "list.md"), "--venue", "ICLR 2030")
    said = laureate("import", str(DATA / "api1.json"), str(DATA / "papers.bib"))
    read, *left_out = said.out.splitlines()
    assert read == "4 read: 3 new, 0 gained something, 1 already there."
    assert all(line.startswith("Left out: ") for line in left_out)
    assert "A Toy Paper on Widgets" in laureate("find", "gyroscopic").out
    bad = tmp_path / "bad.bib"
    bad.write_text("@article{a, title = {T}, junk")
    said = laureate("import", str(DATA / "api2.json"), str(bad))
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert "bad.bib:1: " in said.err
    assert "Gyroscopes" not in laureate("find", "spinning tops").out
    again = json.loads(laureate("import", str(DATA / "api1.json"), "--json").out)
    left_out = again.pop("left_out")
    assert again == {"read": 2, "new": 0, "enriched": 0, "known": 2}
    assert sum(left_out.values()) == len(json.loads((DATA / "api1.json").read_text())["notes"]) - 2
    assert "ICLR 2030" in laureate("find", "zymurgy").out


def test_cite(laureate):
    assert laureate("cite", "fno").out.startswith("@inproceedings{li2021fno,")
    told = json.loads(laureate("cite", "fno", "detag", "--csl").out)
    assert [item["id"] for item in told] == ["fno", "detag"]
    assert "Did you mean fno" in laureate("cite", "fnoo").err
    add([Entry("toy", "A Paper on Toys", ("Ada Lovelace",), "ICML 2030")])
    laureate("run", "toy", "--scale", "smoke")
    assert laureate("cite", "1").out.startswith("@inproceedings{lovelace2030a,")
    assert "There is no run 99." in laureate("cite", "99").err


def test_export_papers(laureate, tmp_path):
    rows = list(csv.DictReader(io.StringIO(laureate("export", "papers").out)))
    assert len(rows) == 873
    assert rows[0]["authors"] == "Paul Vicol; Luke Metz; Jascha Sohl-Dickstein"
    assert len(json.loads(laureate("export", "papers", "--json").out)) == 873
    laureate("export", "papers", "--bibtex", "-o", str(tmp_path / "all.bib"))
    assert (tmp_path / "all.bib").read_text("utf-8").count("\n@") == 872
    assert "laureate cite RUN" in laureate("export", "--bibtex").err
    assert "Neither a run's number nor 'papers'" in laureate("export", "paper").err


def test_verdicts_are_those_of_the_board(laureate, toy):
    laureate("run", "toy", "--scale", "smoke")
    board = board_results(Store(store_path()), [toy.paper])
    assert claims_of(toy.paper, read_shown(store_path())) == board
    assert {row.verdict for row in board} != {"not run"}

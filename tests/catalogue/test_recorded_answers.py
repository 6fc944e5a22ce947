"""What the catalogue answers, cites and reads in, all of it, as it was when somebody last looked at it."""

import dataclasses
import json
import re
import sqlite3
import zlib
from pathlib import Path

import pytest

import made_home
from laureate.catalogue import Catalogue, Entry, citation, entries, index, library
from laureate.catalogue.entry import entry_of, problems_of
from laureate.catalogue.importers import read_file
from laureate.catalogue.importers._clean import clean, decision_of, split_venue, without_tex
from laureate.catalogue.question import Vocabulary, quoted
from laureate.catalogue.spelling import corrections, distance, near
from laureate.catalogue.synonyms import analyse, analysed
from laureate.catalogue.words import compact, forms, plain, raw_words, stem
from laureate.lab.errors import UserError

HERE = Path(__file__).parent
RUNNING = ("pes", "rnd", "gibbs-with-gradients", "raps", "mesh-graph-nets", "directpred", "gvp", "dreamer-v2")
# Beside those of queries.jsonl: empty, hostile, long, in other letters, amounts, names, quotation marks.
ODD = (
    "", " ", "?!", "the", "a of in", "276,984 points and 3.7e18 flops", "95% of 200 ms", "512x512 images", "3d",
    "4-bit", "'; DROP TABLE papers; --", "<script>alert(1)</script>", "noisy labels " * 60, "Σ-algebra", "ΔE",
    "überraschung",
    "labelnoise", "drop out", "drop-out", "dropout", "vae", "variational auto-encoder", "gan's", "RL", "rl for robots",
    "colour", "color", "federated", "federate", "fedrated lerning", "qwertyuiop", "qwertyuiop gradients", "gradients",
    "gradient", '"noisy labels"', '"labels noisy"', "“edge of stability”", '"" ""', "gpt-3 vs. bert", "wav2vec 2.0",
    "who wrote about score matching", "why does my loss become nan", "how do I make my network smaller?",
)  # fmt: skip
FILTERS = (
    {"topic": "vision"}, {"topic": "VISION", "decision": "oral"}, {"venue": "icml"}, {"kind": "theory"}, {"runs": True},
    {"topic": "sampling-inference", "kind": "method", "venue": "ICLR", "runs": True}, {"topic": "none"},
)  # fmt: skip


@pytest.fixture(scope="module")
def some():
    """A catalogue of every sixth paper, by its id, so that none moves when others come."""
    chosen = [one for one in entries() if one.id in RUNNING or zlib.crc32(one.id.encode()) % 6 == 0]
    db = sqlite3.connect(":memory:", isolation_level=None)
    index.build(db, chosen, "test")
    with Catalogue(db, running=RUNNING) as catalogue:
        yield catalogue


def told(result):
    found = [f"{hit.entry.id} {hit.score:.3f}" for hit in result.hits]
    more = {"corrected": result.corrected, "phrase": result.ignored_phrase, "suggestions": result.suggestions}
    return [result.total, *found, *(f"{name}: {value}" for name, value in more.items() if value)]


def test_answers_to_questions_of_every_kind(some, recorded):
    lines = [json.loads(line) for line in (HERE / "queries.jsonl").read_text("utf-8").splitlines()]
    chosen = [one["question"] for one in lines if one["kind"] != "problem"]
    chosen += [one["question"] for one in lines if one["kind"] == "problem"][::6]
    for question in dict.fromkeys(chosen):
        recorded(question, told(some.search(question, limit=5)))


def test_answers_to_odd_questions(some, recorded):
    for question in ODD:
        recorded(question[:40], told(some.search(question, limit=4)))


def test_answers_while_somebody_types(some, recorded):
    for text in ("gradient est", "noisy lab", "confor", "conform", "x", "graph neu", "variat", "labels ", "s"):
        recorded(text, told(some.search(text, limit=3, as_typed=True)))


def test_answers_with_filters_and_pages(some, recorded):
    for number, filters in enumerate(FILTERS):
        recorded(f"{number} {filters}", told(some.search("", limit=4, **filters)))
        recorded(f"{number} and words", told(some.search("gradients of networks", limit=4, **filters)))
    recorded("page 2", told(some.search("gradients of networks", limit=3, offset=3)))
    recorded("listed", told(some.listed(6)))
    recorded("listed, page 3", told(some.listed(3, 6)))
    recorded("behind the last", told(some.listed(3, 10_000)))


def test_what_is_related_and_counted(some, recorded):
    for paper_id in RUNNING:
        recorded(paper_id, [f"{hit.entry.id} {hit.score:.3f}" for hit in some.related(paper_id)])
    recorded("none", some.related("none"))
    recorded("size", some.size)
    recorded("facets", {name: found if name != "venue" else len(found) for name, found in some.facets().items()})
    recorded("order", some.ids()[:5])


WORDS = re.findall(
    r"\S+",
    """
    pre-training pretrained gan's networks' Überraschungen naïve café colour colours colored centre centred analyses
    analysis optimise optimization optimizers matrices indices spectra hypotheses running runs ran learned learnt
    learning learner learners generalise generalization generalisability robustness robust robustly attacks attacked
    attacker sampling sampled samplers posterior posteriors variational variation inference inferring infer
    estimators estimation estimates equivariant equivariance invariances symmetric symmetries dying dies quantised
    quantization noisy noise noises labels labelled labeling relational relations relate policies policy bias biases
    biased biasing happiness feudalism decisiveness hopefulness callousness electrical adjustable defensible
    irritant replacement adoption communism activate angularity homologous effective bowdlerize controlling rolling
    hissing sized fitting agreed plastered motoring conflated troubled failing filing sky skies tie ties gas this is
    as us bus 3d 4-bit wav2vec2 x σ-algebra β-vae ε-greedy l1 t-sne k-means s e.g. c++ state-of-the-art end-to-end
    one-two-three-four
    """,
)


def test_words_and_their_forms(recorded):
    recorded("stem", {word: stem(word) for word in WORDS})
    recorded("forms", {word: forms(word) for word in WORDS if "-" in word or "'" in word})
    for name, function in {"plain": plain, "compact": compact, "raw_words": raw_words}.items():
        texts = ("NAS-Bench-ASR", "Σ-Algebra of L²", "Naïve café's   Ångström–Øre", "C++ & A* (2.0)", "", "ﬁne ½ ①")
        recorded(name, {text: function(text) for text in texts})
    texts = ("label noise in RL", "graph neural networks", "stochastic gradient descent with momentum", "GANs and VAEs",
             "out of distribution detection", "few-shot learning", "large language models", "monte carlo")  # fmt: skip
    recorded("analyse", {text: analyse(text) for text in texts})
    recorded("analysed", {text: analysed(raw_words(text)) for text in texts})
    recorded("quoted", {text: quoted(text) for text in ('a "b c" d', '"a" „b“ c', '"unclosed a', '""')})


def test_what_a_paper_is_known_by(recorded):
    known = {one.id: one for one in entries()}
    for paper_id in ("pes", "directpred"):
        profile = index.profile(known[paper_id])
        top = sorted(profile.items(), key=lambda pair: (-pair[1], pair[0]))[:25]
        recorded(paper_id, [len(profile), *(f"{form} {weight:.3f}" for form, weight in top)])
    for one in made_home.entries()[:5]:
        words: set[str] = set()
        profile = index.profile(one, words)
        recorded(one.id, {form: f"{weight:.3f}" for form, weight in sorted(profile.items())})
        recorded(f"{one.id}, words", sorted(words))
        recorded(f"{one.id}, phrases", index.phrases(one))
        recorded(f"{one.id}, names", sorted(index._names(one)))
    recorded("telling", [index.telling_words(text) for text in ("a-b of the Edge-Of stability", "it's the dog's")])


def test_corrections_of_spelling(some, recorded):
    db = some._db
    for word in (
        "lables",
        "fourrier",
        "nueral",
        "lerning",
        "gradeint",
        "grdient",
        "xylophon",
        "ab",
        "samplin",
        "vission",
    ):
        recorded(word, [f"{one.word} {one.edits} {one.papers}" for one in corrections(db, word)])
    recorded("near", {word: near(db, word) for word in ("gradi", "quantum", "zzz", "ab", "labels")})
    pairs = (("abc", "acb"), ("abc", "abc"), ("kitten", "sitting"), ("", "abc"), ("ca", "abc"), ("a", "aaaa"))
    recorded("distance", [distance(*pair, most) for pair in pairs for most in (1, 3)])
    vocabulary = Vocabulary(db, some.size)
    for text in ("noisy lables", "drop out in fedrated lerning", "labelnoise", "3.7e18 flops of 4-bit nets"):
        corrected, groups = vocabulary.groups(text, as_typed=False)
        held = [(f"{weight:.3f}", {form: f"{share:.2f}" for form, share in sorted(g.items())}) for g, weight in groups]
        recorded(text, [corrected, held])
    recorded("named", {text: sorted(f"{sure:.2f}" for sure in vocabulary.named(text).values())
                       for text in ("PES", "pes", "Dreamer v2 on Atari", "the gvp", "directpred and rnd")})  # fmt: skip


ODD_PAPERS = [
    *made_home.entries()[:7],
    Entry("many", "Many & One: α-β #1 ~ ^ \\", tuple(f"A{i} van der B{i}" for i in range(12)), "NeurIPS 2021", "Oral"),
    Entry("one-name", "X", ("Plato",), "TMLR"), Entry("no-year", "A Title: with a Colon", ("Di He",), "Workshop"),
    Entry("accents", "Über Äpfel", ("Émilie du Châtelet", "Łukasz Ø", "王 小明"), "ICLR 2020", "Spotlight", name="Ä2"),
    Entry("submission", "S", ("El Al", "de la Cruz"), "ICLR 2022 Submission"), Entry("url", "U", url="https://x.y/z%20"),
]  # fmt: skip


def test_citations_of_odd_papers(recorded):
    recorded.text("citations.bib", "\n\n".join(citation.bibtex(one) for one in ODD_PAPERS) + "\n")
    for one in ODD_PAPERS:
        recorded(one.id, citation.csl(one))
    recorded("years", [one.year for one in ODD_PAPERS])
    recorded("surnames", [sorted(one.surnames()) for one in ODD_PAPERS])
    recorded("title keys", [one.title_key() for one in ODD_PAPERS])


NOTE = {"id": "n1", "content": {"title": "T", "authors": ["Ada One"], "venue": "ICLR 2021 Oral"}}
LISTS = {
    "empty.bib": "@misc{a, author={B}}", "unclosed.bib": "@misc{a,\n title={T", "string.bib": '@misc{a, title="T',
    "comma.bib": "@misc{a title={T}}", "equals.bib": "@misc{a, title {T}}", "name.bib": "@misc{a, ={T}}",
    "value.bib": "@misc{a, title=, }", "comment.bib": "@comment(never", "between.bib": "@misc{a, title={T} year=1}",
    "bomb.bib": "@string{a = {" + "x" * 9000 + "}}\n" + "".join(
        f"@string{{{b} = {a} # {a} # {a} # {a} # {a} # {a}}}\n" for a, b in ("ab", "bc", "cd", "de")),
    "joined.bib": "@string{w = {Widgets}}\n@Article(k, title = w # { of } # \"{TeX}\", month = jan, year = 2020)\n"
                  "@preamble{x} @comment{y} text @misc{l, title={N{\\\"u}sken \\& $\\epsilon$-greedy \\emph{x}}}",
    "none.txt": "prose", "bytes.json": "[1]", "cut.json": '{"notes": [', "number.json": "[" + "1" * 5000 + "]",
    "word.json": '{"a": 1}', "title.json": json.dumps([NOTE | {"content": {"title": 3}}]),
    "authors.json": json.dumps([NOTE | {"content": {"title": "T", "authors": [1]}}]),
    "lines.json": json.dumps(NOTE) + "\n\n" + json.dumps(NOTE | {"id": "n2"}),
    "line.json": json.dumps(NOTE) + "\n{broken",
    "review.json": json.dumps([NOTE, NOTE | {"id": "n2", "replyto": "n1"}]),
    "no-list.md": "## A Title\n\nprose\n", "heading.md": "## [](x)\n\n- Ada One\n",
    "good.md": "# ICML 2021 Papers\n\n## [A \\[b\\] *c*](https://x.org/a) ##\n\n* Ada One,\n  Bea Two\n"
               "* abstract: Says\n  more.\n",
    "site.html": "<html><p>nothing</p></html>",
    "card.html": '<div class="displaycards"><a class="small-title" href="/virtual/2021/oral/7"></a></div>',
    "cut.html": '<div class="displaycards"><a class="small-title" href="x">T</a>',
}  # fmt: skip


def read(path):
    try:
        found = read_file(path)
    except UserError as error:
        return str(error).replace(str(path), path.name)
    kept = [{name: value for name, value in one.record().items() if value} for one in found]
    for one in kept:
        one["abstract"] = one.get("abstract", "")[:80]
    return [found.left_out, *kept]


def test_lists_that_are_read_in(recorded, tmp_path):
    for path in sorted((HERE / "data").iterdir()):
        recorded(path.name, read(path))
    for name, text in LISTS.items():
        (tmp_path / name).write_text(text, "utf-8")
        recorded(f"our {name}", read(tmp_path / name))
    recorded("folder", str(read(tmp_path)).replace(tmp_path.name, "FOLDER"))
    recorded("none", read(tmp_path / "none.md"))


def test_texts_from_outside_made_plain(recorded):
    texts = (
        'N{\\"u}sken',
        "\\'{e}t\\'e \\c{c}a \\v{S} \\ss",
        "$\\epsilon$-greedy ~ x``y''",
        "a\u202eb\x1b[1m",
        "  a \n b",
    )
    recorded("without_tex", {text: without_tex(text) for text in texts})
    recorded("clean", {text: clean(text) for text in texts})
    recorded("short", clean("word " * 20, 12))
    venues = ("ICLR 2021 Poster", "Submitted to ICLR 2021", "ICML 2020 Oral (talk)", "notable top 5%",
              "notable top 25%",
              "NeurIPS.cc/2023/Conference", "Accepted", "Rejected", "Under review at TMLR", "to the ICLR 2019 poster",
              "")  # fmt: skip
    recorded("venues", {text: [split_venue(text), decision_of(text)] for text in venues})


def test_what_an_import_changes(recorded, tmp_path, monkeypatch):
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path))
    shipped = next(iter(entries()))
    lists = {
        "new": [Entry("", "DICE: Diversity of Widgets", ("Ada One",), "ICLR 2021"), Entry("", "A Widget"),
                Entry("", "Ωμέγα")],
        "again": [Entry("", "dice - diversity of WIDGETS", ("A. One",)),
                  Entry("", "A Widget", ("Bea Two",), abstract="Says.")],
        "same title": [Entry("", "A Widget", ("Cy Three",), "ICML 2020", "Oral")],
        "of ours": [Entry("", shipped.title, shipped.authors, abstract="What it says."),
                    Entry("pes", "Another of that id")],
    }  # fmt: skip
    for name, papers in lists.items():
        recorded(name, dataclasses.asdict(library.add(papers, venue="TMLR 2022" if name == "new" else "")))
    own = [one for one in library.all_entries() if one.abstract or one.venue == "TMLR 2022" or "DICE" in one.title]
    recorded("own", [{n: v for n, v in one.record().items() if v and n in KEPT} for one in own])


KEPT = ("id", "title", "authors", "venue", "decision", "award", "name", "abstract")


def test_what_is_wrong_with_a_record(recorded):
    good = next(iter(entries())).record()
    changes = {
        "good": {}, "type": {"title": 3, "reviewed": 1, "asks": "x", "fit": True}, "field": {"x": 1},
        "choice": {"topic": "t", "kind": "k", "cpu": "c", "decision": "d", "fit": 4}, "id": {"id": "Bad_Id"},
        "asks": {"asks": ["one"]}, "empty": {"title": "", "problem": "", "does": "", "venue": ""},
        "blanks": {"title": " a  b", "also": ["\tx"]}, "list": {"authors": ["A", ""], "terms": [1]},
    }  # fmt: skip
    for name, change in changes.items():
        recorded(name, problems_of(good | change))
    recorded("older", entry_of({"id": "a", "title": "T", "area": "vision", "unknown": 1}).record())


def test_answers_of_a_very_large_catalogue(some, recorded, monkeypatch):
    """Whose common words are only counted for the papers that the rarer ones bring up."""
    for most in (20, 60, 200):
        monkeypatch.setattr("laureate.catalogue.search.POSTINGS", most)
        for question in ("gradients of graph neural networks", "why is my training of networks noisy", "sampling"):
            recorded(f"{most}: {question}", told(some.search(question, limit=5)))
    monkeypatch.setattr("laureate.catalogue.search.CANDIDATES", 7)
    recorded("few candidates", told(some.search("gradients of graph neural networks", limit=9)))
    recorded("every paper", [sum(1 for _ in some), some.get("none")])

"""Every score of a search, recomputed from the papers by the formulas of ``search`` and ``index``."""

import collections
import gzip
import json
import sqlite3

import numpy as np
import pytest

from laureate.catalogue import Catalogue, english, entries, index, search
from laureate.catalogue.synonyms import analysed
from laureate.catalogue.words import raw_words

PAPERS = entries()[::22]  # forty, of all topics: fewer than are compared by their meaning or get a prior
RUNNING = {paper.id for paper in PAPERS[::3]}
QUESTIONS = [paper.asks[0] for paper in PAPERS[::6]] + ["image pictures noisy labels", PAPERS[5].name, PAPERS[7].title]
# Of two that are nearly as good by their words the second is the best by what it means.
QUESTIONS += ["how can i justify using a deep model over smoothing splines"]


@pytest.fixture(scope="module")
def catalogue():
    db = sqlite3.connect(":memory:", isolation_level=None)
    index.build(db, PAPERS, "test")
    with Catalogue(db, running=RUNNING) as opened:
        yield opened


def profile_of(paper):
    """Form -> Σ over fields of count · weight / (1 - b + b · length / usual length), in thousandths as it is kept."""
    found: dict[str, float] = {}
    for field, text in index._fields(paper):
        forms = analysed(raw_words(text))
        usual = 1 - index.LENGTH_SHARE + index.LENGTH_SHARE * len(forms) / index.LENGTHS[field]
        for form, count in collections.Counter(forms).items():
            found[form] = found.get(form, 0.0) + count * index.WEIGHTS[field] / usual
    return found


PROFILES = [profile_of(paper) for paper in PAPERS]


def summed(groups):
    """Σ over groups of weight · t / (k + t) in each paper, t = Σ share · how much it is about the form."""
    total = np.zeros(len(PAPERS))
    for group, weight in groups:
        t = np.array(
            [sum(w * round(1000 * each.get(form, 0)) / 1000 for form, w in group.items()) for each in PROFILES]
        )
        total += weight * t / (search.SATURATION + t)
    return total


def likeness(meaning):
    """The mean of the three largest cosines between a question and the phrases of each paper, in signed bytes."""
    ranked = {word: (rank, np.frombuffer(vector, np.int8)) for word, rank, vector in english.shipped_words()}
    found = []
    for paper in PAPERS:
        near = []
        for text in index.phrases(paper):
            words = [ranked[word] for word in index.telling_words(text) if word in ranked]
            total = sum((rank + 10) / (rank + 1010) * vector for rank, vector in words) + np.zeros(english.DIMENSIONS)
            near.append(meaning @ np.round(127 * total / (np.linalg.norm(total) or 1.0)) / 127)
        found.append(np.mean(sorted(near)[-3:]))
    return np.array(found)


def with_priors(scores, most):
    honours = [0.006 * bool(paper.award) + 0.001 * paper.fit for paper in PAPERS]
    return scores + search.RUNNING * most * np.array([paper.id in RUNNING for paper in PAPERS]) + honours


@pytest.mark.parametrize(("bound", "meant"), [(search.POSTINGS, search.MEANT), (10, 4)], ids=["whole", "bounded"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_score_is_words_names_meaning_and_priors(catalogue, monkeypatch, question, bound, meant):
    """Where only rare words are read whole, the others count as much for the papers that these bring up.

    And the first by all of them are compared by their meaning.
    """
    monkeypatch.setattr(search, "POSTINGS", bound)
    monkeypatch.setattr(search, "MEANT", meant)
    _, groups = catalogue._words.groups(question, as_typed=False)
    counts = {form: sum(form in each for each in PROFILES) for group, _ in groups for form in group}
    now, later = search._planned(groups, {form: count for form, count in counts.items() if count})
    words = summed(now)
    for number, sure in catalogue._words.named(question).items():
        words[number - 1] += sure * sum(weight for _, weight in groups)
    words += np.where(words > 0, summed(later), 0.0)
    assert bool(later) == (bound == 10 and len(groups) > 1), "else nothing is looked up"
    near = likeness(np.array(catalogue._words.direction(question)))
    near[np.argsort(-words, kind="stable")[meant:]] = 0.0
    scores = words + search.MEANING * words.max() * near
    scores = with_priors(scores, scores.max())
    expected = {paper.id: score for paper, score, said in zip(PAPERS, scores, words, strict=True) if said}
    hits = catalogue.search(question, limit=len(PAPERS)).hits
    assert {hit.entry.id: hit.score for hit in hits} == pytest.approx(expected, abs=6e-5)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len({*hits}) == len(hits) > 0


@pytest.mark.parametrize("number", [0, 11, 30])
def test_related_papers_share_the_most_telling_words(catalogue, number):
    counts = collections.Counter(form for each in PROFILES for form in each)
    rarity = {form: np.log1p((len(PAPERS) - n + 0.5) / (n + 0.5)) for form, n in counts.items()}
    own = PROFILES[number]
    telling = sorted(own, key=lambda form: -rarity[form] * own[form] / (search.SATURATION + own[form]))[:25]
    words = summed([({form: 1.0}, rarity[form]) for form in telling])
    scores = with_priors(words, words.max())
    expected = {PAPERS[i].id: scores[i] for i in np.flatnonzero(words) if i != number}
    found = {hit.entry.id: hit.score for hit in catalogue.related(PAPERS[number].id, limit=len(PAPERS))}
    assert found == pytest.approx(expected, abs=6e-5)


def test_common_words_that_are_looked_up_count_as_if_they_were_read(catalogue):
    _, groups = catalogue._words.groups(" ".join(QUESTIONS[:4]), as_typed=False)
    assert any(len(group) > 1 for group, _ in groups)
    postings = catalogue._postings({form for group, _ in groups for form in group})
    expected = summed(groups)
    found = [search._amount_later(number, groups, postings) for number in range(1, len(PAPERS) + 1)]
    assert found == pytest.approx(expected.tolist())


def test_the_words_of_english_are_read_to_the_last_byte():
    words = list(english.shipped_words())
    assert [rank for _, rank, _ in words] == list(range(len(words)))
    told = "\n".join(word for word, _, _ in words).encode(), b"".join(vector for _, _, vector in words)
    header, _, rest = gzip.decompress(english.SHIPPED_WORDS.read_bytes()).partition(b"\n")
    assert json.loads(header)["bytes"] == len(told[0])
    assert rest == b"".join(told)

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laureate.catalogue.spelling import distance
from laureate.catalogue.synonyms import GROUPS, analyse, substitutes
from laureate.catalogue.words import compact, forms, raw_words, stem


@pytest.mark.parametrize(
    "family",
    [
        "optimise optimize optimisation optimization optimizer optimised optimizing",
        "colour color colours colors",
        "behaviour behavior behavioural behavioral",
        "model models modelling modeling modelled",
        "label labels labelled labeling",
        "quantise quantize quantisation quantization quantized",
        "centre center centres centers",
        "regularise regularization regulariser",
        "network networks",
        "bias biases biased",
        "neighbour neighbor neighbourhood",
        "predict prediction predictor predictions",
        "supervise supervised supervision",
        "analyse analyze analysis",
        "gan gans",
    ],
)
def test_one_form_for_a_family(family):
    assert len({stem(word) for word in family.split()}) == 1


@pytest.mark.parametrize(
    "words",
    ["general generate", "normal normalise", "variance variational", "policy police", "optimal optimise", "noise nose"],
)
def test_different_words_stay_apart(words):
    assert len({stem(word) for word in words.split()}) == 2


def test_hyphens_accents_and_greek():
    assert forms("pre-training") == ("pre", "train", "pretrain")
    assert raw_words("Nüsken's ε-greedy") == ["nusken's", "epsilon-greedy"]
    assert compact("NAS-Bench-ASR") == compact("nas bench asr")


def test_compounds_have_their_short_form():
    assert "gan" in analyse("generative adversarial networks")
    assert "ood" in analyse("out of distribution")
    assert "ood" in analyse("out-of-distribution")
    assert "nas" in analyse("neural architecture search")


def test_substitutes_go_both_ways_unless_an_arrow_says_so():
    table = substitutes()
    assert stem("picture") in table[stem("image")]
    assert stem("image") in table[stem("picture")]
    assert stem("planning") in table[stem("chess")]
    assert stem("chess") not in table.get(stem("planning"), ())
    assert all(word and word != source for source, words in table.items() for word in words)
    assert "" not in table
    assert GROUPS.count("\n\n") == 0


@settings(deadline=None)  # a busy machine is no fault
@given(st.text(max_size=60))
def test_any_text_can_be_analysed(text):
    assert all(isinstance(form, str) and form for form in analyse(text))


@settings(deadline=None)
@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_distance_is_symmetric_bounded_and_zero_only_for_equals(first, second):
    apart = distance(first, second, 9)
    assert apart == distance(second, first, 9) <= max(len(first), len(second))
    assert (apart == 0) == (first == second)
    assert distance(first, second, 1) == min(apart, 2)

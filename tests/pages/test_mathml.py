from xml.etree import ElementTree

import pytest

from laureate.pages.mathml import mathml
from laureate.papers import all_papers

GROUP = '<mrow><mo stretchy="false">(</mo><mi>n</mi><mo stretchy="false">)</mo></mrow>'
PRIME = '<mo lspace="0" rspace="0">\u02b9</mo>'


def parsed(equation: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<all>{mathml(equation)}</all>")


def inner(equation: str) -> str:
    return mathml(equation).removeprefix('<math display="block">').removesuffix("</math>")


@pytest.mark.parametrize(
    ("equation", "expected"),
    [
        ("x_t", "<msub><mi>x</mi><mi>t</mi></msub>"),
        ("x_{t+1}", "<msub><mi>x</mi><mrow><mi>t</mi><mo>+</mo><mn>1</mn></mrow></msub>"),
        ("x_i^m'", f"<msubsup><mi>x</mi><mi>i</mi><mrow><mi>m</mi>{PRIME}</mrow></msubsup>"),
        ("e^{s_t}", "<msup><mi>e</mi><msub><mi>s</mi><mi>t</mi></msub></msup>"),
        ("cost_j g", "<msub><mtext>cost</mtext><mi>j</mi></msub><mi>g</mi>"),
        ("KS²", "<msup><mtext>KS</mtext><mn>2</mn></msup>"),
        ("Bin(n) is, so", "<mtext>Bin</mtext>" + GROUP + "<mtext>&#160;is</mtext><mo>,</mo><mtext>&#160;so</mtext>"),
        ("σ²", "<msup><mi>σ</mi><mn>2</mn></msup>"),
        ("x'_m", f"<msub><mrow><mi>x</mi>{PRIME}</mrow><mi>m</mi></msub>"),
        ("a ≠ b", "<mi>a</mi><mo>≠</mo><mi>b</mi>"),
        ("1/(2N)", "<mfrac><mn>1</mn><mrow><mn>2</mn><mi>N</mi></mrow></mfrac>"),
        ("a / b", "<mi>a</mi><mo>/</mo><mi>b</mi>"),
        ("√Δt + 1", "<msqrt><mi>Δ</mi><mi>t</mi></msqrt><mo>+</mo><mn>1</mn>"),
        ("ĝ", '<mover accent="true"><mi>g</mi><mo stretchy="false">^</mo></mover>'),
        ("lo_k", "<msub><mtext>lo</mtext><mi>k</mi></msub>"),
        ("mean_k x", '<munder><mi>mean</mi><mi>k</mi></munder><mo rspace="0.17em">&#8289;</mo><mi>x</mi>'),
        ("log(n)", "<mi>log</mi><mo>&#8289;</mo>" + GROUP),
        ("a < b & c", "<mi>a</mi><mo>&lt;</mo><mi>b</mi><mo>&amp;</mo><mi>c</mi>"),
    ],
)
def test_what_it_knows(equation, expected):
    assert inner(equation) == expected


def test_sums_have_their_limits_beneath_and_words_stay_words():
    drawn = parsed("Σ_{τ≤t} ε_τ for each truncation τ")
    assert [node.tag for node in drawn[0]] == ["munder", "msub", "mtext", "mi"]
    assert drawn[0][2].text.strip("\xa0") == "for each truncation"


@pytest.mark.parametrize("hostile", ["((", "_", "x_", "}{", "√", "1/", "<script>", "x_{a", "⁽", "Σ_"])
def test_nonsense_is_shown_and_never_markup(hostile):
    assert "<script" not in mathml(hostile)
    parsed(hostile)


def test_every_equation_of_the_package_is_well_formed_and_keeps_its_letters():
    for paper in all_papers():
        drawn = parsed(paper.equation)
        assert len(drawn) == len(paper.equation.strip().splitlines())
        shown = "".join(drawn.itertext())
        signs = [node.text for node in drawn.iter("mo") if node.get("stretchy") != "false"]
        assert not {"_", "^"} & set(signs), f"{paper.id} shows signs of its notation"
        assert {letter for letter in paper.equation if letter in "θεξσφΔ∇"} <= set(shown), paper.id

import itertools
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


MI, MN = "<mi>{}</mi>".format, "<mn>{}</mn>".format
ROW = "<mrow>{}</mrow>".format
BASES = {"x": MI("x"), "θ": MI("θ"), "12": MN("12"), "(n)": GROUP, "Var": MI("Var"), "max": MI("max")}
BASES |= {"Σ": '<mo largeop="true" movablelimits="false">∑</mo>', "KL": "<mtext>KL</mtext>"}
LOWER = {"_i": MI("i"), "ᵢ": MI("i"), "₁₂": MN("12"), "_{i,j}": ROW(f"{MI('i')}<mo>,</mo>{MI('j')}")}
UPPER = {"²": MN("2"), "ᵀ": MI("T"), "^n": MI("n"), "^{n+1}": ROW(f"{MI('n')}<mo>+</mo>{MN('1')}")}


@pytest.mark.parametrize("base", BASES)
def test_indices_and_powers_stand_at_what_they_are_of_in_either_order(base):
    """Beneath and above sums and extrema, beside everything else; a fraction takes all of it."""
    large = base in ("Σ", "max")
    names = ("munder", "mover", "munderover") if large else ("msub", "msup", "msubsup")
    pairs = [*itertools.product({"": "", **LOWER}, {"": "", **UPPER})]
    for low, high in pairs:
        which = names[2 if low and high else 0 if low else 1]
        parts = "".join((BASES[base], LOWER.get(low, ""), UPPER.get(high, "")))
        expected = f"<{which}>{parts}</{which}>" if low or high else BASES[base]
        for text in {base + low + high, base + high + low} - {"KL"}:  # alone it is a word
            after = '<mo rspace="0.17em">&#8289;</mo>' if base in ("Var", "max") else ""
            assert inner(f"{text} y") == f"{expected}{after}{MI('y')}", text
            if base in ("x", "θ", "12", "(n)"):
                upper = MI("n") if expected == GROUP else expected  # the bar groups already
                for under, told in {
                    "2": MN("2"),
                    "(2N)": ROW(MN("2") + MI("N")),
                    "x_i": f"<msub>{MI('x')}{MI('i')}</msub>",
                }.items():
                    assert inner(f"{text}/{under}") == f"<mfrac>{upper}{told}</mfrac>", text


@pytest.mark.parametrize(
    "under", ["2", "10", "x", "2x", "x2", "2πσ²", "Δt", "x_i", "x_{i+1}y", "(a+b)", "(2)", "((n))"]
)
def test_a_root_is_of_what_follows_it_up_to_the_next_sign(under):
    inside = inner(under[1:-1] if under.startswith("(") else under)
    for after, told in {
        "": "",
        " + 1": f"<mo>+</mo>{MN('1')}",
        ")": '<mo stretchy="false">)</mo>',
        "·y": f"<mo>·</mo>{MI('y')}",
    }.items():
        assert inner(f"√{under}{after}") == f"<msqrt>{inside}</msqrt>{told}"

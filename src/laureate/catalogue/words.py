"""From text to the words that are compared: one spelling, one form, the same for papers and for questions.

Both sides pass through here, so a rule here need not yield an English word; it has to send the forms of one
word (plurals, tenses, British and American spelling) to one place and keep different words apart.
"""

import functools
import itertools
import re
import unicodedata

__all__ = ["STOP_WORDS", "compact", "forms", "plain", "raw_words", "stem"]

# Words of question phrasing and of glue. They say nothing about the problem: "how do I ...", "is there a way to ...".
_GLUE = """
    a about actually after again all already also although always am an and another any anything are aren as at away be
    because become been before being both but by came can cannot cant come could couldn did didn do does doesn doing don
    done dont each either else enough etc even ever every everything find for from gave get gets getting give given
    gives go goes going good got had has hasn have haven having he help helps her here him his how however i if im in
    instead into is isn it its itself ive just keep keeps know like ll look looking made make makes making may maybe me
    might much must my need needed needing needs never new nice no not of often on once one ones only or other others
    our out own paper papers perhaps please possible put quite rather re really right s same say seem seems shall she
    should show so some somehow someone something sort still such sure t take takes than that the their them then there
    these they thing things this those though through thus to too trick tried try trying until up upon us use used
    useful user uses using ve very via want wanted wants was way ways we well were what when whenever where whether
    which while who whom whose why will with without won work working works would wouldn yet you your
"""
STOP_WORDS = frozenset(_GLUE.split())

# Families that no suffix rule keeps together, or that the rules would throw together with others: all of a line are
# one word, its first, and so are their plurals and tenses.
_FAMILIES = """
noise noises noisy noised noising
index indices indexes
matrix matrices
vertex vertices
mouse mice
data datum
analysis analyses analyse analyze analysed analyzed analysing analyzing analytic analytical analytically
learn learnt learned learning learner learners learns
teach taught teacher teachers teaching
fast faster fastest
quick quicker quickly
cheap cheaper cheapest cheaply
slow slower slowly slowness
small smaller smallest
big bigger biggest
large larger largest
long longer
short shorter
few fewer
hard harder
choose chosen chose choosing choice choices
forget forgotten forgot forgetting forgets
draw drawn drew drawing draws
hide hidden
speak spoken speaking
gray grey
defense defence defences defend defends defending defender
offense offence
license licence
program programme programmes programs
artifact artefact artefacts artifacts
catalog catalogue catalogues
dialog dialogue dialogues
mathematics maths math mathematical
general generally
generat generate generates generated generating generation generations generative generator generators
generalis generalise generalises generalised generalising generalisation generalize generalizes generalized generalizing
generalis generalization generalisable generalizable
privacy private privately
fair fairness fairly unfair unfairness
uncertain uncertainty uncertainties
causal causality causation causally
language languages linguistic linguistics
physics physical physically
molecule molecules molecular
neuron neurons neuronal
visual vision visually visuals
symmetry symmetric symmetries symmetrical
equivariant equivariance equivariances
invariant invariance invariances
explain explanation explanations explaining explains explained explainable explainability explanatory
compress compression compressing compressed
sparse sparsity sparsify sparsely sparsification
dense densely
prove proof proofs provable provably proven proves
theory theoretical theoretically theorem theorems theories
hierarchy hierarchical hierarchies hierarchically
synthesis synthesise synthesize synthetic synthesising synthesizing synthesised synthesized synthesiser synthesizer
hypothesis hypotheses
imitate imitation imitating imitates
recognise recognition recognize recognized recognised recognising recognizing recogniser recognizer recognises
classify classifier classifiers classification classifications classifies classified classifying
predict predictor predictors prediction predictions predicts predicting predicted predictive
sample sampler samplers samples sampling sampled
train trainer training trained trains
augment augmentation augmentations augmented augmenting
neighbor neighbour neighbours neighbors neighborhood neighbourhood neighborhoods neighbourhoods neighboring neighbouring
bias biased biases biasing debias debiasing debiased
ode odes
tree trees
free freely
iid
pretrain pretrained pretraining pretrains
finetune finetuning finetuned finetunes
summary summaries summarise summarize summarisation summarization summarising
vary variation variations varies varying
variance variances
variational
verify verification verifier verifying verifies verified
certify certification certificate certificates certified certifying certifiable
identify identification identifying identifies identified identifiable identifiability
reduce reduction reduces reducing reduced
produce production produces producing produced
converge convergence converges converging convergent
diverge divergence diverges diverging divergent
diverse diversity diversify
depend dependent dependence dependency dependencies depends
decide decision decisions decides deciding
describe description descriptions describes described
detect detection detector detectors detecting detects
simulate simulation simulator simulators simulating simulations simulated
optimis optimise optimize optimised optimized optimising optimizing optimisation optimization optimiser optimizer
optimis optimisers optimizers optimizations optimisations
optimal optimally optimality optimum
expert experts expertise
agent agents
attack attacks attacker attackers attacking attacked
adversary adversarial adversarially adversaries
gan gans
interpret interpretable interpretability interpretation interpretations interpreting
retrieve retrieval retrieving retriever
attribute attribution attributions attributes
infer inference inferring inferred
tune tuning tuned
shrink shrinks shrinking shrunk
write written writing
approximate approximation approximations approximating approximately
evolve evolution evolutionary evolving
chemistry chemical chemicals
medicine medical
biology biological
genome genomes genomic genomics
robust robustness robustly
combine combination combining combines
compare comparison comparing compares
embed embedded embedding
add
exceed
proceed
succeed
die dying
lie lying
tie tying
fly
gpu
cpu
tpu
api
relu
menu
plateau
""".strip()
_FORMS = {form: line.split()[0] for line in _FAMILIES.splitlines() for form in line.split()}
_ENDINGS = (("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ied", "y"), ("ing", ""), ("ing", "e"))

_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ϵ": "epsilon", "θ": "theta", "λ": "lambda",
    "μ": "mu", "π": "pi", "σ": "sigma", "τ": "tau", "φ": "phi", "χ": "chi", "ω": "omega", "ℓ": "l", "∞": "infinity",
}  # fmt: skip
_LETTERS = str.maketrans(_GREEK | {"ø": "o", "ł": "l", "ß": "ss", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "’": "'"})
_WORD = re.compile(r"[a-z0-9]+(?:[-'][a-z0-9]+)*")

# American to British where z and s differ: supervise/supervision already agree in s, optimise/optimization then do too.
_IZE = re.compile(r"([a-z]{2,}[iy])z(e|ed|es|er|ers|ing|ation|ations|able)$")
_OUR = re.compile(r"([a-z]{3,})our(s|ed|ing|ings|al|ally|hood|hoods|ful|able|isation|ise|ised|ising)?$")
_CENTRE = re.compile(r"([a-z]*)(cent|met|fib)(re|res|red)$")
_VOWELS = "aeiou"


def plain(text: str) -> str:
    """Lower case, without accents, Greek letters by their names."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKD", text.lower().translate(_LETTERS))
    return "".join(letter for letter in text if not unicodedata.combining(letter))


def compact(text: str) -> str:
    """Letters and digits only: ``NAS-Bench-ASR`` and ``nas bench asr`` are one name."""
    return re.sub(r"[^a-z0-9]+", "", plain(text).replace("+", "plus"))


def raw_words(text: str) -> list[str]:
    """The words as written, lower case, hyphens and apostrophes kept inside."""
    return _WORD.findall(plain(text))


@functools.lru_cache(maxsize=65536)
def forms(word: str) -> tuple[str, ...]:
    """The forms of one word as written; a hyphen opens it and closes it: "pre-training" is "pretraining" too."""
    parts = [part for part in re.split(r"[-']", word) if part]
    found = [stem(part) for part in parts if part not in STOP_WORDS]
    if 1 < len(parts) < 4 and "-" in word:
        found.append(stem("".join(parts)))
    return tuple(found)


@functools.lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """One form for a word's plurals, tenses, derivations and spellings (the steps of Porter 1980, own extensions)."""
    if family := _family(word):
        return family
    if len(word) <= 3 or not word.isalpha():
        return word[:-1] if len(word) == 3 and word.endswith("s") and word[1] not in _VOWELS + "s" else word
    word = _one_spelling(word)
    word = _step_plural(word)
    if len(word) <= 3:
        return word  # days are of a day, which is left as it is
    word = _step_tense(word)
    if len(word) > 3 and word.endswith("y") and any(letter in _VOWELS for letter in word[:-1]):
        word = word[:-1] + "i"
    for table, least in _TABLES:
        word = _strip(word, table, least)
    if word.endswith("e") and (_measure(word[:-1]) > 1 or (_measure(word[:-1]) == 1 and not _cvc(word[:-1]))):
        word = word[:-1]
    return word[:-1] if word.endswith("ll") else word


def _family(word: str) -> str:
    """The family of a word, or of one whose plural or tense it is; empty where there is none."""
    bases = (word[: len(word) - len(end)] + instead for end, instead in _ENDINGS if word.endswith(end))
    return next((_FORMS[base] for base in (word, *bases) if base in _FORMS), "")


def _one_spelling(word: str) -> str:
    if "z" in word:
        word = _IZE.sub(r"\1s\2", word)
    if "our" in word:
        word = _OUR.sub(r"\1or\2", word)
    if "re" in word[-3:]:
        word = _CENTRE.sub(lambda found: f"{found[1]}{found[2]}er{found[3][2:].replace('d', 'ed')}", word)
    return word


def _is_consonant(word: str, place: int) -> bool:
    if word[place] == "y":
        return place == 0 or not _is_consonant(word, place - 1)
    return word[place] not in _VOWELS


def _measure(word: str) -> int:
    """Porter's m: how many times a vowel is followed by a consonant."""
    kinds = [_is_consonant(word, place) for place in range(len(word))]
    return sum(1 for before, after in itertools.pairwise(kinds) if not before and after)


def _cvc(word: str) -> bool:
    if len(word) < 3 or word[-1] in "wxy":
        return False
    last = len(word) - 1
    return _is_consonant(word, last) and not _is_consonant(word, last - 1) and _is_consonant(word, last - 2)


def _has_vowel(word: str) -> bool:
    return any(not _is_consonant(word, place) for place in range(len(word)))


def _step_plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies"):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is", "ias")):
        return word[:-1]
    return word


def _step_tense(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("edly", "ingly", "ed", "ing"):
        if word.endswith(suffix) and _has_vowel(word[: -len(suffix)]):
            word = word[: -len(suffix)]
            if word.endswith(("at", "bl", "is", "ys", "anc", "enc")):
                return word + "e"
            if len(word) > 1 and word[-1] == word[-2] and word[-1] not in "lsz" and _is_consonant(word, len(word) - 1):
                return word[:-1]
            return word + "e" if _measure(word) == 1 and _cvc(word) else word
    return word


_DOUBLE_SUFFIXES = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("isation", "ise"), ("abli", "able"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ation", "ate"), ("ator", "ate"),
    ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"),
    ("biliti", "ble"), ("logi", "log"), ("li", ""),
)  # fmt: skip
_SUFFIXES = (("icate", "ic"), ("ative", ""), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""))
_LONG_SUFFIXES = tuple(
    (suffix, "")
    for suffix in (
        "ement", "ment", "ance", "ence", "able", "ible", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ion",
        "al", "er", "ic",
    )
)  # fmt: skip


def _by_end(table: tuple[tuple[str, str], ...]) -> dict[str, list[tuple[str, str]]]:
    ends: dict[str, list[tuple[str, str]]] = {}
    for suffix, instead in table:
        ends.setdefault(suffix[-1], []).append((suffix, instead))
    return ends


# Each table with the measure that what remains must exceed.
_TABLES = ((_by_end(_DOUBLE_SUFFIXES), 0), (_by_end(_SUFFIXES), 0), (_by_end(_LONG_SUFFIXES), 1))


def _strip(word: str, table: dict[str, list[tuple[str, str]]], least: int) -> str:
    for suffix, instead in table.get(word[-1], ()):
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            if suffix == "ion" and not rest.endswith(("s", "t")):
                return word
            if suffix == "li" and rest[-1:] not in "cdeghkmnrt":
                return word
            return rest + instead if _measure(rest) > least else word
    return word

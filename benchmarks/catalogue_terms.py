"""Give the shipped papers their `terms`: words frequent in the abstract, rare elsewhere, and not yet in our own words.

Run once for each listing whose abstracts are at hand:

    python benchmarks/catalogue_terms.py LISTING.md

It takes at most 30 words a paper, in alphabetical order: enough to be found by, too little to read. Papers that the
listing does not have keep the terms they have.
"""

import collections
import json
import math
import sys
from pathlib import Path

from laureate.catalogue.entry import SHIPPED
from laureate.catalogue.importers import read_file
from laureate.catalogue.words import STOP_WORDS, compact, raw_words, stem

MOST = 30
# The prose of abstracts; it tells nothing of the paper.
_PROSE = """
able accordingly achieve achieved achieves achieving across additional additionally address addressed addresses admit
advance advances advantage advantages aim aims allow allowing allows almost already amount answer appealing applicable
applied apply argue arise arises aspect attain attained attempt attention attractive available avoid based basic
become becomes begin behind believe bells benefit benefits besides best better beyond bring brings broad broadly call
called careful carefully carry case cases central certain challenge challenges challenging claim clear clearly close
closely code codes coined common commonly compare compared comparable competitive complex comprehensive concern
conduct conducted confirm consequently consider considerable considerably consist consists contrast contribute
contribution contributions corresponding current currently demonstrate demonstrated demonstrates despite detail
detailed details develop developed development devise difficult directly discuss draw dubbed due easily easy effective
effectively effectiveness efficacy empirical empirically employ employed enable enables enabling encouraging end enjoy
enjoys ensure entire especially essential establish evaluate evidence examine example exhibit exhibits existing exists
experiment experimental experiments extend extensive extensively fact fail fails far favorable field finally finding
findings first focus follow following follows formally former found framework fully fundamental furthermore gain gains
general github goal great greatly hence highly holds hope https idea ideas identify illustrate immediate impact
important importantly impressive improve improved improvement improvements improves improving include includes
including increasingly indeed insight insights inspired instead interest interesting interestingly introduce
introduced introduces introducing investigate involve involves issue issues key known lack latter lead leading leads
less leverage leverages leveraging limited literature little main mainly major majority many mean means mechanism
mechanisms moreover motivate motivated namely naturally nature necessary nevertheless notable notably note novel
numerous observe observed obtain obtained obtaining obtains open order orders outperform outperforming outperforms
overall overcome particular particularly performance perform performed performing performs plan play popular positive
potential potentially power powerful practical practice precisely present presented presents previous previously
primarily principle principled prior problem problems promising properties property propose proposed proposes
proposing provide provided provides providing public publicly question questions range real realize recent recently
regardless related relatively release rely relies remain remains remarkable report reported require required requires
requiring research researchers respect respectively result resulting results reveal reveals revisit rich role second
seek setting settings several showing shown shows significant significantly similar simple simply since sota specific
specifically state standard strong studied studies study substantial substantially success successful successfully
suffer suffers sufficient suggest suggests suitable superior superiority support surprising surprisingly tackle
technique techniques therefore third thorough thoroughly towards typical typically ultimately underlying understood
unfortunately unlike usually utilize utilizes valid validate variety various verify viewed vast whereas whistles wide
widely yield yielding yields
"""
PROSE = frozenset(_PROSE.split())


def main(listing: Path) -> None:
    abstracts = {compact(paper.title): paper.abstract for paper in read_file(listing) if paper.abstract}
    words = {key: collections.Counter(_words(text)) for key, text in abstracts.items()}
    spread = collections.Counter(form for counts in words.values() for form in {stem(word) for word in counts})
    records = [json.loads(line) for line in SHIPPED.read_text(encoding="utf-8").splitlines()]
    for record in records:
        counts = words.get(compact(record["title"]), {})
        said = " ".join(record[field] for field in ("title", "problem", "does", "demo"))
        known = {stem(word) for word in _words(said)}
        weight: dict[str, tuple[float, str]] = {}
        for word, count in counts.items():
            form = stem(word)
            if form not in known and spread[form] > 1 and len(form) > 2:
                value = (1 + math.log(count)) * math.log(len(words) / spread[form])
                weight[form] = max(weight.get(form, (0.0, word)), (value, word))
        best = sorted(weight.values(), key=lambda pair: (-pair[0], pair[1]))[:MOST]
        record["terms"] = sorted(word for _, word in best) if counts else record.get("terms", [])
    SHIPPED.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    print(f"{sum(bool(record['terms']) for record in records)} of {len(records)} papers have terms")


def _words(text: str) -> list[str]:
    parts = [part for word in raw_words(text) for part in word.replace("'", "-").split("-")]
    return [part for part in parts if part.isalpha() and part not in STOP_WORDS and part not in PROSE]


if __name__ == "__main__":
    main(Path(sys.argv[1]))

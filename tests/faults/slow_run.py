"""A run of some seconds in a process of its own, for tests that stop it. Prints its summary as JSON."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))

if __name__ == "__main__":
    import toys
    from laureate.lab.claim import Claim, Scale
    from laureate.lab.home import store_path
    from laureate.lab.run import run_claims
    from laureate.lab.store import Store

    claim = Claim("better", "ours is lower", metric="loss", method="ours", baseline="theirs")
    scales = {"smoke": Scale(seeds=8, block=1, sleep=0.1)}
    slow = toys.experiment(trial="slow", claims=(claim,), scales=scales, curves=(), over_seeds="loop")
    try:
        summary = run_claims(
            Store(store_path()), toys.selections(toys.paper(slow)), scale="smoke", workers=int(sys.argv[1])
        )
    except KeyboardInterrupt:
        sys.exit(130)
    print(json.dumps(summary.to_json()))

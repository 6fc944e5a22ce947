"""Every benchmark, one after the other: ``python -m benchmarks [NAME...]``. Beside peers: ``laureate bench``."""

import importlib
import pkgutil
import sys

import benchmarks

HELPERS = {"timing", "catalogue_terms", "__main__"}


def main() -> None:
    names = sorted({module.name for module in pkgutil.iter_modules(benchmarks.__path__)} - HELPERS)
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")] or names
    sys.argv = [sys.argv[0], *(word for word in sys.argv[1:] if word.startswith("-"))]  # the options are theirs
    for name in wanted:
        if name not in names:
            sys.exit(f"There is no benchmark {name!r}; there are: {', '.join(names)}.")
        print(f"== {name}", file=sys.stderr)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()

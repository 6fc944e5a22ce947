# Two commands do everything on a bare clone: `make demo` and `make test`. Both can be repeated.
PYTHON ?= python3
BIN := .venv/bin
# The tests start hundreds of processes: without bytecode each would compile our sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check test-all lint types docs bench bench-gate faults fuzz mutation clean help

help: ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## / — /'

demo: .venv/ready ## set up, run the claims of one celebrated paper, print the verdicts and where the page is
	@echo "== laureate run pes (a few minutes the first time; finished cells are kept)"
	@$(BIN)/laureate run pes

# Types are checked beside the tests: alone that would leave a core idle for two minutes.
BESIDE_TYPES = $(MAKE) --no-print-directory types > .types.log 2>&1 & types=$$!; \
	{ $(BIN)/python -m pytest -m "$(MARKS)"; }; tests=$$?; wait $$types; checked=$$?; cat .types.log; rm -f .types.log; \
	exit $$((tests ? tests : checked))

test: .venv/ready lint ## set up, lint, test; PAPER=<id> or AREA=<area>: all that belongs to it, and types
	@echo "== tests"
ifeq ($(PAPER)$(AREA),)
	@$(BIN)/python -m pytest
else
	@tests=$$($(BIN)/python tests/belongs.py '$(PAPER)' '$(AREA)') && \
	  PAPER='$(PAPER)' AREA='$(AREA)' $(BIN)/python -m pytest -m 'not slow' $$tests
	@$(MAKE) --no-print-directory types TYPED=src
endif

check: MARKS = not slow
check: .venv/ready lint ## what CI runs: the tests of `make test`, the thorough ones, and the types of everything
	@echo "== tests, also the thorough ones"
	@$(BESIDE_TYPES)

test-all: MARKS =
test-all: .venv/ready lint ## the same, with the tests that take minutes
	@echo "== all tests, also the slow ones"
	@$(BESIDE_TYPES)

lint: .venv/ready
	@echo "== lint and format"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: .venv/ready ## the types of everything, tests and examples too
	@echo "== types"
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright $(TYPED)

docs: .venv/ready ## the documentation into site/: strict, every example executed (minutes)
	@$(BIN)/python -c 'import mkdocs, material, mkdocstrings' 2>/dev/null || $(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[docs]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "site/index.html opens from disk; with its search: $(BIN)/python -m http.server -d site"

bench: .venv/ready ## speed side by side with the peers that are installed (benchmarks/README.md)
	@$(BIN)/laureate bench
	@$(BIN)/python -m benchmarks

bench-gate: .venv/ready ## fail where a method is slower than at the last `laureate bench` on this machine, beyond noise
	@$(BIN)/laureate bench --gate

faults: .venv/ready ## kill, starve, fill and damage it, for a quarter of an hour (the ordinary tests have a short version)
	@$(BIN)/python -m pytest tests/faults tests/lab/test_determinism.py -m "" -n 0

fuzz: .venv/ready ## hand the importers, the search and problem files what nobody would, for a minute (see scripts/fuzz.py)
	@$(BIN)/python scripts/fuzz.py

mutation: .venv/ready ## plant faults one at a time and see that the tests notice (an hour for all; see scripts/mutation.py)
	@$(BIN)/python scripts/mutation.py

# uv installs in seconds what takes pip minutes; pip does where uv cannot be had. Bytecode is made now: where Python may
# not write it later (PYTHONDONTWRITEBYTECODE, as in many containers), every process would spend 2 s on compiling jax.
.venv/ready: pyproject.toml
	@echo "== setting up .venv (once; about a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "laureate needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@{ $(BIN)/python -m pip install --quiet --disable-pip-version-check uv \
	  && $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --editable '.[dev]'; } \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean: ## remove the environment and the caches of this folder (never your results)
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis dist

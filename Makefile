# Two commands matter: `make serve` runs a server, `make test` checks everything. Both set up what they need.

PYTHON ?= $(shell command -v python3.11 || echo python3)
UV_VERSION := 0.13.9
BIN := .venv/bin
UV := .uv/bin/uv
# How many processes share the tests.
WORKERS ?= 2
MODELS := .venv/.models-installed
ENV := .venv/.synced
# Programs that tests run and no wheel brings, and where Debian has them.
TOOLS := chromium curl nginx systemd-analyze
TOOL_PACKAGES := chromium curl nginx-light systemd
CORE := antiphon.admission,antiphon.residency
CORE_TESTS := $(addprefix tests/core/test_,$(addsuffix .py,gate gate_changes gate_view policy scheduler estimates lifecycle registry eviction idle crashes))

.PHONY: setup serve test test-fast lint types layers core suite mutants tools clean

setup: $(ENV) $(MODELS)

serve: setup
	$(BIN)/antiphon serve --parallel-jobs

# Lint, types, layers, then every test; the pure core must be covered whole.
test: setup lint types layers core suite

# The inner loop: no engines, nothing slow.
test-fast: $(ENV) tools
	$(BIN)/ruff check .
	$(BIN)/pytest -q -n $(WORKERS) -m "not engine and not slow"

lint: $(ENV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/biome ci --colors=off --error-on-warnings src/antiphon/page

types: $(ENV)
	$(BIN)/mypy

layers: $(ENV)
	$(BIN)/lint-imports

core: $(ENV)
	$(BIN)/coverage run --branch --source=$(CORE) -m pytest -q $(CORE_TESTS)
	$(BIN)/coverage report --fail-under=100 --show-missing

suite: $(ENV) $(MODELS) tools
	$(BIN)/pytest -q -n $(WORKERS)

# Faults in a copy of the code, one at a time, each of which a test must notice. Takes too long for `test`.
mutants: $(ENV)
	$(BIN)/python tests/mutants/run.py -n $(WORKERS)

$(UV):
	$(PYTHON) -m venv .uv
	.uv/bin/python -m pip install --quiet uv==$(UV_VERSION)

$(ENV): pyproject.toml uv.lock | $(UV)
	UV_PYTHON_DOWNLOADS=never $(UV) sync --quiet --frozen --all-extras --python $(PYTHON)
	touch $@

$(MODELS): src/antiphon/packages/catalogue.toml | $(ENV)
	$(BIN)/antiphon models install --default
	touch $@

# Root gets what is missing from Debian; whoever is not is told by the tests that need it.
tools:
	@PATH="$$PATH:/usr/sbin"; \
	for tool in $(TOOLS); do command -v $$tool; done | wc -l | grep -qx '[[:space:]]*$(words $(TOOLS))' \
	|| [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null \
	|| { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $(TOOL_PACKAGES); }

clean:
	rm -rf .venv .uv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage

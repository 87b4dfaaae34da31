# Short names for what is done every day; CMake does the building. `make help` lists them.
#
#   PRESET=default|cuda|vulkan|debug|asan|tsan   which build (CMakePresets.json); default
#   GGML=pinned|system                           ggml from .deps, or one that is installed; pinned
#   CMAKE_ARGS="-D..."                           more options for CMake
#   ARGS="..."                                   for `run`: options of `inkstone serve`; for `test`: of ctest; for `bench`: of the benchmark
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory --no-builtin-rules
.DEFAULT_GOAL := build
.NOTPARALLEL:

PRESET ?= default
GGML ?= pinned
CMAKE_ARGS ?=
ARGS ?=
PYTHON := /usr/bin/python3

BUILD := $(if $(filter default,$(PRESET)),build,build/$(PRESET))
VARIANT := $(if $(filter cuda vulkan asan tsan,$(PRESET)),$(PRESET),cpu)

.PHONY: run test build configure deps deps-test bench lint fmt fmt-check asan tsan soak fuzz clean help

run: build ## build what is missing and serve on http://127.0.0.1:7860
	@exec $(BUILD)/inkstone serve $(ARGS)

test: deps-test configure ## every test: unit, golden, http, fuzz corpus, web
	@cmake --build $(BUILD)
	@$(if $(wildcard scripts/fetch_assets.py),$(PYTHON) scripts/fetch_assets.py,:)
	@$(PYTHON) scripts/run_tests.py $(BUILD) $(ARGS)

build: configure ## optimised build; leaves build/inkstone
	@cmake --build $(BUILD)

deps: ## fetch what the build needs: Debian packages (as root), ggml, Node
	@scripts/deps.sh system build
ifeq ($(GGML),pinned)
	@scripts/deps.sh ggml $(VARIANT)
endif
	@$(if $(wildcard web/package-lock.json),scripts/deps.sh node,:)

deps-test:
	@scripts/deps.sh system build test
	@scripts/deps.sh python

# CMake runs by itself when its own files change; this is for the first time and for other options.
# Our warnings are gcc's: clang, which only the fuzz build uses, has more of them.
CONFIGURE = cmake --preset $(PRESET) -DDEVELOPER=$(if $(filter fuzz,$(PRESET)),OFF,ON) -DINKSTONE_SYSTEM_GGML=$(if $(filter system,$(GGML)),ON,OFF) $(CMAKE_ARGS)
configure: deps
	@if [ ! -e $(BUILD)/build.ninja ] || [ "$$(cat $(BUILD)/.configured 2>/dev/null)" != '$(CONFIGURE)' ] || \
	    { [ ! -e $(BUILD)/.with-tests ] && pkg-config --exists cmocka; }; then \
	    $(CONFIGURE) && echo '$(CONFIGURE)' >$(BUILD)/.configured; \
	fi

bench: deps-test build ## the standard scenarios against the peers
	@bench/run $(ARGS)

lint: ## layers, banned calls, formatting, clang-tidy's small set
	@$(PYTHON) scripts/check_layers.py
	@$(MAKE) fmt-check
	@scripts/tidy.sh $(BUILD)

fmt: ## format all C files
	@scripts/format.sh -i

fmt-check: ## fail when a C file is not formatted
	@scripts/format.sh --dry-run -Werror

asan: ## all tests under the address and undefined-behaviour sanitizers
	@$(MAKE) test PRESET=asan

tsan: ## all tests under the thread sanitizer
	@$(MAKE) test PRESET=tsan

soak: ## 10,000 mixed requests (SOAK_REQUESTS) to a server under the address sanitizer
	@$(MAKE) build PRESET=asan
	@INKSTONE=$(CURDIR)/build/asan/inkstone INKSTONE_BUILD_DIR=$(CURDIR)/build/asan INKSTONE_SOURCE_DIR=$(CURDIR) \
	    INKSTONE_SANITIZE=address,undefined ASAN_OPTIONS=abort_on_error=1:quarantine_size_mb=64 \
	    INKSTONE_SOAK_REQUESTS=$(or $(SOAK_REQUESTS),10000) $(PYTHON) tests/soak/test_soak.py

fuzz: ## clang's fuzzer, FUZZ_SECONDS (60) an entry
	@scripts/deps.sh system build fuzz
	@$(MAKE) build PRESET=fuzz
	@scripts/fuzz.sh build/fuzz $(or $(FUZZ_SECONDS),60)

clean: ## remove build/ (.deps/ stays)
	@rm -rf build

help: ## this list
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS=$$'\t' read -r name text; do \
	    printf '  make %-10s %s\n' "$$name" "$$text"; done
	@sed -nE '/^#   [A-Z]/s/^#   /  /p' $(firstword $(MAKEFILE_LIST))

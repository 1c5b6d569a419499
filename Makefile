# What a person or CI runs. Every target first makes sure that the machine has what it needs (scripts/setup).
# Always the whole workspace and one profile (`dev`): RocksDB takes over ten minutes to compile, nobody should pay for it twice.
SHELL := /bin/bash
.DEFAULT_GOAL := help

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
SCENARIO := $(TARGET_DIR)/debug/trellara-scenario
# Kills in the smoke form of the crash scenario; the full form is `make scenario NAME=crash`.
SMOKE_KILLS ?= 5
RUNS ?= 3

.PHONY: help setup build demo test test-root scenario bench bench-native lint doc

help: ## what there is
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install or name the missing prerequisites
	@scripts/setup

build: setup
	cargo build --workspace

demo: build ## twelve stores, two of them poisoned, brought back with the printed commands
	$(SCENARIO) scenarios/demo.yml

scenario: build ## run scenarios/$(NAME).yml
	@test -n "$(NAME)" || { echo "say which: make scenario NAME=crash" >&2; exit 2; }
	$(SCENARIO) scenarios/$(NAME).yml

test: setup ## every test that needs no root, and the crash scenario in its smoke form
	cargo test --workspace --no-fail-fast
	cargo build --workspace
	$(SCENARIO) scenarios/crash.yml --kills $(SMOKE_KILLS)
	@echo "left to 'make test-root': the full target disk (tmpfs needs root)"

test-root: build ## what needs root: a full disk at the target, on a tmpfs
	$(SCENARIO) scenarios/full-disk.yml

bench: bench-native ## every benchmark there is

bench-native: build ## side by side with native logical replication; RUNS=3
	$(TARGET_DIR)/debug/trellara-bench-native --runs $(RUNS)

lint: setup ## formatting, clippy, sizes, module headers
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	scripts/check-shape
	scripts/check-docs

doc: setup ## the documentation of every crate
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

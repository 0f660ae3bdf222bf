# The development loop. `make help` lists it; `make test` is what must pass.

GO       ?= go
BIN      := bin
LINT     := $(BIN)/golangci-lint
MODULES  := . e2e tools
NPM_DEPS := e2e/npm/node_modules/.package-lock.json

# What `omniroute version` prints: the nearest tag, or the commit.
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# How long `make fuzz` gives to each fuzz target, which rows `make bench` measures (all), which
# benchmarks `make bench-micro` runs, and flags for the tests of `make e2e`.
FUZZTIME ?= 10s
ROWS     ?=
BENCH    ?= .
COUNT    ?= 1
# How many random worlds `make torture` plays, and from which seed on; which mutations `make mutations`
# tries (a part of their names, or all), and whether it writes down the seeds that catch them (UPDATE=1).
SEEDS    ?= 100000
FROM     ?= 0
MUTATION ?= all
UPDATE   ?=
E2EFLAGS ?=

# Go files of the project; what npm unpacks is not ours.
GOFILES   = $(shell find . -name '*.go' -not -path '*/node_modules/*' -not -path './$(BIN)/*')

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help build demo test check unit e2e cases crash incidents agreement torture mutations fmt fmt-check vet lint fuzz bench bench-micro fleet-table image-check tidy-check clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the static binary bin/omniroute
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN)/omniroute ./cmd/omniroute

demo: build ## run the gateway with simulated, failing providers
	$(BIN)/omniroute serve --demo

# One step after the other, whatever -j says: each line is read by people, and the cheap ones come first.
test: ## everything that must pass: format, vet, lint, tests with the race detector, end-to-end tests
	@$(MAKE) --no-print-directory -j1 fmt-check vet lint unit e2e cases

check: ## the quick part of `make test`: format, vet and the tests without the race detector
	@$(MAKE) --no-print-directory -j1 fmt-check vet
	$(GO) test ./...

# Where tests leave something out under the race detector (what memory costs, most of the random worlds), they run
# without it, too.
RACELESS = $(sort $(dir $(shell grep -rlE --include='*_test.go' '^//go:build !race' $(filter-out ./e2e/ ./bin/, $(wildcard ./*/)))))

unit: ## the tests of the main module, with the race detector, in random order
	$(GO) test -race -shuffle=on -timeout 20m ./...
	$(GO) test -shuffle=on -timeout 20m $(RACELESS)

e2e: $(NPM_DEPS) ## the real binary with official SDK clients; E2EFLAGS=-v prints the matrix
	cd e2e && $(GO) test -race -shuffle=on -timeout 20m $(E2EFLAGS) $$($(GO) list ./... | grep -v '/cases$$')

# By themselves, since their upstream plays one case after the other and some look at the time.
cases: ## the dialect cases beside the checkout, in ../shared/dialects, where they are there
	cd e2e && $(GO) test -race -count=1 -v ./cases

crash: ## upstreams that fail a waiting request in sixteen ways, as a table of verdicts
	$(GO) test -count=1 -v -run 'TestCrash$$' ./internal/lab/crash

torture: ## random worlds against the laws; SEEDS=1000000 FROM=0, some 300 a second and core
	$(GO) test -count=1 -timeout 0 -run 'TestTorture$$' ./internal/lab/torture -seeds $(SEEDS) -from $(FROM)

mutations: ## break one law after the other and see that the torture notices, some minutes; MUTATION=name UPDATE=1
	$(GO) test -count=1 -timeout 0 -v -run 'TestMutations$$' ./internal/lab/torture -mutations $(MUTATION) $(if $(UPDATE),-update)
	$(if $(UPDATE),$(GO) test -count=1 -run 'TestLawsTable|TestEveryLawNotices' ./internal/lab/torture -update)

fmt: ## format the Go files
	gofmt -w $(GOFILES)

fmt-check:
	@bad=$$(gofmt -l $(GOFILES)) || exit 1; \
	if [ -n "$$bad" ]; then echo "not formatted, run make fmt:"; echo "$$bad"; exit 1; fi

vet:
	$(GO) vet ./...
	cd e2e && $(GO) vet ./...

lint: $(LINT) ## run golangci-lint
	$(LINT) run --allow-parallel-runners ./...
	cd e2e && ../$(LINT) run --allow-parallel-runners --config ../.golangci.yml ./...

incidents: ## play the eight examples and write their figures into docs/incidents and BENCHMARKS.md
	$(GO) test -count=1 -run TestIncidentPages ./internal/lab/simulate -update

agreement: ## three outages in the simulator and in real time against the gateway, half a minute on a quiet machine
	$(GO) test -count=1 -v -run 'TestAgreesWithTheGateway' ./internal/lab/simulate -real

fuzz: ## run every fuzz target for FUZZTIME (10s)
	GO=$(GO) scripts/fuzz $(FUZZTIME)

bench: build ## measure engine and gateway beside their references, some minutes; BENCH_SHORT=1, ROWS=regexp
	$(GO) build -o $(BIN)/omnibench ./bench/cmd/omnibench
	cd e2e && $(GO) test -run '^$$' -bench 'Admit|Decide' -benchmem -cpu 1,2 ./bench/...
	$(GO) test -run '^$$' -bench Decide -benchmem ./internal/route
	$(BIN)/omnibench run -binary $(BIN)/omniroute -rows '$(ROWS)'

fleet-table: ## write the table of docs/cluster.md: what a fleet wastes in an outage
	$(GO) test ./internal/lab/fleet -run Table -update -timeout 20m -v

bench-micro: ## run the Go benchmarks, and other breakers beside ours; BENCH=regexp COUNT=n
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...
	cd e2e && $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -cpu 1,2 ./bench/...

image-check: ## the steps of the container file by hand, and the program in what they make; Linux, as root
	scripts/image

tidy-check: ## fail when a go.mod or go.sum is not tidy
	@for m in $(MODULES); do echo "$$m: go mod tidy -diff"; $(GO) -C $$m mod tidy -diff || exit 1; done

clean: ## remove what was built
	rm -rf $(BIN) e2e/npm/node_modules

# Built from source at the version that tools/go.mod pins, so that everybody lints with the same rules.
$(LINT): tools/go.mod tools/go.sum
	@echo "building golangci-lint (once; a minute or three)"
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -C tools -trimpath -ldflags '-s -w' -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# npm ci writes this file last.
$(NPM_DEPS): e2e/npm/package.json e2e/npm/package-lock.json
	cd e2e/npm && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

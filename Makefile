# Settings: make fuzz FUZZTIME=1m; make bench BENCH=Queues COUNT=10; make chaos SEED=7 HOURS=1 REDIS=sentinel REPLICAS=1
FUZZTIME ?= 20s
BENCH ?= .
COUNT ?= 1
SEED ?=
HOURS ?= 0.05
REDIS ?=
REPLICAS ?=
GUARDED ?=

# Tests often wait for processes and connections, so more packages than processors are tested at the same time. make lint has
# vetted the packages. Without the debugging information, the test programs are linked in half of the time.
TEST := go test -vet=off -ldflags=-w -timeout 20m -p $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN))
# make test PKG="./internal/web ./worker" tests these packages only, and make test RACED=1 those that make race leaves out.
PKG ?= $(if $(RACED),$(filter-out $(patsubst .%,github.com/tdf-framework/tdf%,$(CONCURRENT)),$(shell go list ./...)),./...)

# The packages with goroutines, channels or locks, and cmd/tdf, which tests those below it.
CONCURRENT = ./cmd/tdf $(shell git grep -lE '"sync(/atomic)?"|^\s*go (func|[a-z])|\bchan\b' -- '*.go' ':!*_test.go' ':!bench' ':!tools' \
	':!internal/web/clienttest' ':!internal/deploytest/*/*' | xargs -n1 dirname | sort -u | sed 's|^|./|; s|^\./\.$$|.|')
# For speed, the race detector leaves out the interpreter of Lua in the embedded Redis and the libraries that compress and draw:
# each of their states is used by one goroutine at a time. Do not add packages that use sync.Map or atomic values: the linker keeps
# one copy of a generic function, and without instrumentation, this copy makes the race detector report races of other packages that
# are none. So miniredis is not in the list.
UNCHECKED := image compress golang.org/x/image github.com/yuin/gopher-lua github.com/dsnet/compress github.com/ulikunitz/xz \
	$(addprefix github.com/klauspost/compress/,flate fse huff0 zstd)
# At its end, each process waits for late races: a second by default. The tests start hundreds of processes, so it waits for 50 ms.
RACE := GORACE=atexit_sleep_ms=50 CGO_ENABLED=1 $(TEST) -race $(UNCHECKED:%=-gcflags=%/...=-race=false)

# Compilers need about a sixth less CPU time if they collect garbage less often.
test race check lint: export GOGC = 400
test race check lint: export GOMEMLIMIT = 2GiB

# what the tests need
TOOLS := go gcc Rscript chromium dask dpkg git mypy node npm parallel promtool pytest-3 python3 redis-server rsync slurmctld snakemake

MODULES := $(patsubst %/go.mod,%,$(wildcard bench/go.mod internal/deploytest/compose/go.mod internal/deploytest/kubernetes/go.mod internal/web/clienttest/go.mod))

.DEFAULT_GOAL := help
.PHONY: help build dist setup test check race slow lint fmt fuzz soak chaos versions bench bench-peers clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build static programs into bin/
	@[ -e bin/tdf ] || echo "The first build compiles all packages, which takes some minutes of CPU time."
	scripts/build bin

dist: ## build the files of a release into dist/: archives, packages, a wheel, an SBOM and checksums
	scripts/setup go dpkg git python3
	TDF_DIST=1 go test -run 'TestDist$$' -count=1 ./internal/deploytest
	scripts/dist

setup: ## install the missing tools for tests and linters
	scripts/setup

test: ## install missing tools, and run all tests; Go repeats only those whose inputs have changed
	scripts/setup $(TOOLS)
	$(TEST) $(PKG)
ifneq ($(origin PKG),command line)
	@set -e; for module in $(MODULES); do echo "go test: $$module"; (cd $$module && $(TEST) ./...); done
endif

check: ## test PKG=./worker, the packages that import it, and check all of them with the linters
	scripts/setup $(TOOLS)
	TEST='$(TEST)' scripts/check $(PKG)

race: ## run the tests of packages whose goroutines share memory with the race detector
	scripts/setup $(TOOLS)
	$(RACE) $(CONCURRENT)

slow: ## run all tests as on a slow machine: on a quarter of a core, with slow starts of processes
	scripts/setup $(TOOLS)
	scripts/slow

lint: ## check format, Go, Lua, shell and go.mod
	scripts/setup go luacheck shellcheck systemd-analyze
	scripts/lint

fmt: ## format the Go files
	go tool -modfile=tools/go.mod gofumpt -w .

fuzz: ## run each fuzz target for FUZZTIME (20s)
	scripts/setup go gcc redis-server rsync
	FUZZTIME=$(FUZZTIME) scripts/fuzz

soak: ## run the long versions of the soak tests (up to an hour per package)
	scripts/setup go gcc redis-server rsync
	TDF_SOAK=1 go test -run Soak -count=1 -timeout 60m ./...

chaos: ## break a whole TDF again and again for HOURS (0.05), and check that nothing was lost; REDIS=sentinel or cluster adds failovers
	scripts/setup go redis-server
	TDF_HOURS=$(HOURS) TDF_SEED=$(SEED) TDF_REDIS=$(REDIS) TDF_REPLICAS=$(REPLICAS) TDF_GUARDED=$(GUARDED) \
		go test -run Chaos -count=1 -v -timeout $$(awk 'BEGIN { printf "%dm", 60 * $(HOURS) + 30 }') ./internal/chaos

versions: ## test the store on the installed Redis, and on the newest Redis and Valkey of several suites of Debian
	scripts/setup go gcc git redis-server rsync
	scripts/versions

bench: ## run the benchmarks of calls to Redis; BENCH selects some, COUNT repeats them
	scripts/setup go redis-server
	cd bench && go test -run '^$$' -bench '$(BENCH)' -count $(COUNT) -timeout 0 .

bench-peers: ## compare TDF with other tools, and check the targets for speed
	scripts/setup go redis-server node npm parallel
	cd bench && go run ./peers

clean: ## remove the files that the other targets made
	rm -rf bin dist

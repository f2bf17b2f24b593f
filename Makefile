# Settings: make fuzz FUZZTIME=1m; make bench BENCH=Claim COUNT=10
FUZZTIME ?= 20s
BENCH ?= .
COUNT ?= 1

# The tests run with the race detector, with these exceptions for speed: go vet has already checked the packages. The interpreter
# of Lua in the embedded Redis and the libraries that compress and draw are not instrumented, because each of their states is used by one
# goroutine at a time. Do not add packages that use sync.Map or atomic values: the linker keeps one copy of a generic function, and
# without instrumentation, this copy makes the race detector report races of other packages that are none. So miniredis is not in
# the list. Tests often wait for processes and connections, so more packages than processors are tested at the same time. Tests
# and linters build with the same flags (CHECKED), so that each package is compiled only once for both. The other modules are tested
# without it: they are no part of TDF, and would have to compile their dependencies for it.
PLAIN := image compress golang.org/x/image github.com/yuin/gopher-lua github.com/dsnet/compress github.com/ulikunitz/xz $(addprefix github.com/klauspost/compress/,flate fse huff0 zstd)
CHECKED := -race $(PLAIN:%=-gcflags=%/...=-race=false)
# Compilers need about a sixth less CPU time if they collect garbage less often. The tests themselves do not get this setting (USUAL),
# because some of them measure memory.
test lint: export GOGC = 400
test lint: export GOMEMLIMIT = 2GiB
USUAL := -exec 'env -u GOGC -u GOMEMLIMIT'
VET := CGO_ENABLED=1 go vet $(CHECKED) ./...
# The race detector lets each process sleep for a second at its end, to hear of late races. The tests start hundreds of processes, so it sleeps for 50 ms.
TEST := GORACE=atexit_sleep_ms=50 CGO_ENABLED=1 go test $(CHECKED) $(USUAL) -vet=off -count=1 -timeout 30m \
	-p $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN)) ./...

MODULES := $(patsubst %/go.mod,%,$(wildcard bench/go.mod internal/deploytest/compose/go.mod web/clienttest/go.mod))

.DEFAULT_GOAL := help
.PHONY: help build dist setup test lint fmt fuzz soak bench bench-peers bench-run bench-look bench-pages screenshots clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build static programs into bin/
	scripts/build bin

dist: ## build static programs for linux, amd64 and arm64, into dist/
	scripts/dist

setup: ## install the missing tools for tests and linters
	scripts/setup

test: ## install missing tools, and run all tests with the race detector
	scripts/setup go gcc chromium git node npm parallel promtool python3 redis-server rsync
	$(VET)
	$(TEST)
	@set -e; for module in $(MODULES); do echo "go vet, go test: $$module"; \
		(cd $$module && go vet ./... && go test $(USUAL) -vet=off -count=1 -timeout 30m ./...); done

lint: ## check format, Go, Lua, shell and go.mod
	scripts/setup go gcc luacheck shellcheck systemd-analyze
	CHECKED='$(CHECKED)' scripts/lint

fmt: ## format the Go files
	go tool -modfile=tools/go.mod gofumpt -w .

fuzz: ## run each fuzz target for FUZZTIME (20s)
	scripts/setup go gcc redis-server rsync
	FUZZTIME=$(FUZZTIME) scripts/fuzz

soak: ## run the long versions of the soak tests (up to an hour per package)
	scripts/setup go gcc redis-server rsync
	TDF_SOAK=1 go test -run Soak -count=1 -timeout 60m ./...

bench: ## run the benchmarks of calls to Redis; BENCH selects some, COUNT repeats them
	scripts/setup go redis-server
	cd bench && go test -run '^$$' -bench '$(BENCH)' -count $(COUNT) -timeout 0 .

bench-peers: ## compare TDF with other tools, and check the targets for speed
	scripts/setup go redis-server node npm parallel
	cd bench && go run ./peers

bench-run: ## measure runs per second, compared with xargs, GNU parallel and a bare loop
	scripts/setup go redis-server parallel
	cd bench && go run ./peers -bars run

bench-look: ## measure how fast tdf answers with a million tasks
	scripts/setup go redis-server
	cd bench && go run ./look

bench-pages: ## measure the pages of the dashboard with a million tasks and 10,000 campaigns
	scripts/setup go redis-server
	cd bench && go run ./look -pages -repeats 3

screenshots: ## make the pictures of the dashboard in docs/images
	scripts/setup go chromium redis-server
	mkdir -p docs/images
	TDF_SCREENSHOTS=$(CURDIR)/docs/images go test -run Screenshots -count=1 ./web/dashboard

clean: ## remove the files that the other targets made
	rm -rf bin dist

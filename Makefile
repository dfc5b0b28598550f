# Everything runs from a fresh clone: `make check` is what the README gives for
# the tests, and what the continuous integration runs.

MODULES    := . ./bench ./cmd/zklock ./test ./zkotel ./zkprom
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME   ?= 10s
GO         ?= go
# For a package's tests; some take minutes, and machines are slow or busy.
PATIENCE   := -timeout 40m

.PHONY: check deps lint vet format test race test-command test-bench spec spec-table test-real mutants screenshots fuzz simulate simulate-race simulate-more bench-server bench bench-quick build packages clean

## check: all of the below, over all modules.
check: deps lint test race simulate simulate-race test-command test-bench spec mutants test-real fuzz

## deps: install what the tests against real ZooKeeper need, where it may.
deps:
	@scripts/install-deps

## build: the command, into bin/.
build:
	$(GO) build -o bin/zklock ./cmd/zklock

## lint: formatting, vet for three systems, staticcheck.
lint: format vet
	@for m in $(MODULES); do (cd $$m && $(GO) run $(STATICCHECK) ./...) || exit 1; done

format:
	@files=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi

vet:
	@for m in $(MODULES); do (cd $$m && $(GO) vet ./...) || exit 1; done
	@for os in darwin windows; do for m in . ./cmd/zklock ./zkotel ./zkprom; do \
		(cd $$m && GOOS=$$os $(GO) vet ./...) || exit 1; done; done

## test: the library, hermetic: no network, no ZooKeeper, nothing installed.
test:
	$(GO) test $(PATIENCE) ./...

## race: the same with the race detector, what the command and its metrics are made
## of, and of the module test some that need nothing installed.
race:
	$(GO) test -race $(PATIENCE) ./...
	cd cmd/zklock && $(GO) test -race $(PATIENCE) ./internal/...
	cd zkprom && $(GO) test -race $(PATIENCE) ./...
	cd test && $(GO) test -race $(PATIENCE) ./history ./regressions

## test-command: the command, as typed, and metrics and spans.
test-command:
	cd cmd/zklock && $(GO) test $(PATIENCE) ./...
	cd zkprom && $(GO) test $(PATIENCE) ./...
	cd zkotel && $(GO) test $(PATIENCE) ./...

## test-bench: the comparisons themselves, with next to no load.
test-bench:
	cd bench && $(GO) test $(PATIENCE) ./...

## bench-server: the embedded server and Apache ZooKeeper under the same load, on
## this disk; some eight minutes. BENCHFLAGS=-quick takes one.
bench-server:
	$(GO) run ./bench server $(BENCHFLAGS)

## bench: the locks beside those of Curator, kazoo, go-zookeeper, etcd and redsync;
## half an hour. Installs etcd and redis where it may.
bench:
	@scripts/install-deps -bench
	$(GO) run ./bench locks $(BENCHFLAGS)

## bench-quick: a picture of it in a few minutes.
bench-quick:
	@scripts/install-deps -bench
	$(GO) run ./bench locks -quick $(BENCHFLAGS)

## test-real: against Apache ZooKeeper, Curator and kazoo. Skips loudly what is
## not installed; ZKLOCK_REQUIRE_REAL=1 makes that a failure. Three packages at a
## time: most of what they do is wait. The models of test/spec and the mutants have
## targets of their own.
test-real: deps
	cd test && $(GO) test -count=1 -p 3 $(PATIENCE) $$($(GO) list ./... | grep -vE '/test/(spec|mutants)$$')

## spec: spin looks through the models in spec/, of which every broken variant
## must be refuted. Skips loudly where spin or gcc is missing, as test-real does.
spec: deps
	cd test && $(GO) test -count=1 $(PATIENCE) ./spec

## spec-table: the same, and writes the results into spec/README.md.
spec-table: deps
	cd test && $(GO) test -count=1 ./spec -update

## mutants: breaks one rule of the product at a time, by an edit in test/mutants; the
## test that it names must fail. Some four minutes.
mutants: deps
	cd test && $(GO) test -count=1 $(PATIENCE) ./mutants

## screenshots: the page after an hour of a fleet, which takes none, as pictures for
## the README; needs Debian's chromium.
screenshots: deps
	cd test && $(GO) test -count=1 ./ui -run 'TestScreenshots$$' -screenshots=$(CURDIR)/docs/screenshots

## fuzz: every fuzz target for FUZZTIME each (a duration, or a count such as 20000x),
## one on each processor at a time.
fuzz:
	@scripts/fuzz $(FUZZTIME)

## simulate: SEEDS simulated histories of clients, locks, server, network, disk,
## from seed FROM on, over all processors; and every twentieth of them once more
## with the race detector, in simulate-race. A run that did too little fails.
SEEDS ?= 2000
FROM  ?= 1
SIMULATE = ./internal/sim -run 'TestSeeds$$' -count=1 -timeout 2h -v
simulate:
	$(GO) test $(SIMULATE) -seeds=$(SEEDS) -from=$(FROM)

simulate-race:
	$(GO) test -race $(SIMULATE) -seeds=$$(( ($(SEEDS) + 19) / 20 )) -from=$(FROM)

## simulate-more: SEEDS histories that never were, with a line of their own in
## internal/sim/testdata/totals.tsv; and the sum of all lines.
simulate-more:
	$(GO) test $(SIMULATE) -seeds=$(SEEDS) -from=0 -record=$(CURDIR)/internal/sim/testdata/totals.tsv
	$(GO) test ./internal/sim -run 'TestRecorded$$' -count=1 -v

## packages: deb and rpm of the command for amd64 and arm64, into dist/.
packages:
	packaging/build dist

clean:
	rm -rf bin dist

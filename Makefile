# All targets work in a fresh clone. `make check` runs every test, also in continuous
# integration.

MODULES    := . ./bench ./cmd/zklock ./test ./zkkerberos ./zkotel ./zkprom
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME   ?= 10s
GO         ?= go
# The time limit for the tests of one package. Some take minutes, more on a busy machine.
TIMEOUT    := -timeout 90m

.PHONY: check deps lint vet format test race test-command test-bench spec spec-table test-real mutants screenshots fuzz simulate simulate-race simulate-more bench-server bench bench-quick build packages release clean

## check: every check, over all modules.
check: deps lint test race simulate simulate-race test-command test-bench spec mutants test-real fuzz

## deps: install what the tests against real ZooKeeper need, as root on Debian or Ubuntu.
deps:
	@scripts/install-deps

## build: build the command into bin/.
build:
	$(GO) build -o bin/zklock ./cmd/zklock

## lint: check formatting, and run go vet for three systems, staticcheck, and govulncheck.
lint: format vet
	@for m in $(MODULES); do (cd $$m && $(GO) run $(STATICCHECK) ./...) || exit 1; done
	@scripts/vulncheck . cmd/zklock zkkerberos zkotel zkprom

format:
	@files=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi

vet:
	@for m in $(MODULES); do (cd $$m && $(GO) vet ./...) || exit 1; done
	@for os in darwin windows; do for m in . ./cmd/zklock ./zkkerberos ./zkotel ./zkprom; do \
		(cd $$m && GOOS=$$os $(GO) vet ./...) || exit 1; done; done

# Tests of locks and clients that run against the embedded server, including tests that
# reproduce bugs of other libraries.
REGRESSION := Adopted|Container|Grant|Missed|Orphan|Permits|Readers|Regression|Release|Sequence|Stale|Swapped|TwoNodes|Waiter|WakeUp|WatchOn
EMBEDDED   := ^Test(Client|Locks|LockDelay|Cancels|.*ReusedName|$(REGRESSION))

# Tests of locks on a simulated network.
SIMULATED  := ^Test(Simulat|GuardAnswers)

## test: test the library, with conformance tests and the simulation. It needs no network,
## no ZooKeeper, and nothing installed.
test:
	$(GO) test $(TIMEOUT) ./...
	cd test && $(GO) test $(TIMEOUT) ./sim
	cd test && $(GO) test $(TIMEOUT) -run '$(EMBEDDED)' ./locktest
	cd test && $(GO) test $(TIMEOUT) -run '$(SIMULATED)' ./faults

## race: run the same tests with the race detector, and also those of the command's
## packages, of zkprom and zkkerberos, and some of the module test that need nothing installed.
race:
	$(GO) test -race $(TIMEOUT) ./...
	cd cmd/zklock && $(GO) test -race $(TIMEOUT) ./internal/...
	cd zkprom && $(GO) test -race $(TIMEOUT) ./...
	cd zkkerberos && $(GO) test -race $(TIMEOUT) ./...
	cd test && $(GO) test -race $(TIMEOUT) -skip TestModels ./model
	cd test && $(GO) test -race $(TIMEOUT) ./sim
	cd test && $(GO) test -race $(TIMEOUT) -run '$(EMBEDDED)' ./locktest
	cd test && $(GO) test -race $(TIMEOUT) -run '$(SIMULATED)' ./faults -faults.simulations=1

## test-command: test the command with scripts, and the modules for metrics, spans, and
## Kerberos.
test-command:
	cd cmd/zklock && $(GO) test $(TIMEOUT) ./...
	cd zkprom && $(GO) test $(TIMEOUT) ./...
	cd zkotel && $(GO) test $(TIMEOUT) ./...
	cd zkkerberos && $(GO) test $(TIMEOUT) ./...

## test-bench: test the benchmarks themselves, with almost no load.
test-bench:
	cd bench && $(GO) test $(TIMEOUT) ./...

## bench-server: compare the embedded server and Apache ZooKeeper under the same load, on
## this disk. It takes about eight minutes, or one with BENCHFLAGS=-quick.
bench-server:
	$(GO) run ./bench server $(BENCHFLAGS)

## bench: compare the locks with those of Curator, kazoo, go-zookeeper, etcd, and redsync.
## It takes half an hour, and as root on Debian or Ubuntu it installs etcd and redis.
bench:
	@scripts/install-deps -bench
	$(GO) run ./bench locks $(BENCHFLAGS)

## bench-quick: the same comparison in two minutes, with less precision.
bench-quick:
	@scripts/install-deps -bench
	$(GO) run ./bench locks -quick $(BENCHFLAGS)

## test-real: test against Apache ZooKeeper, Curator, and kazoo. It reports what is not
## installed and skips it, or fails if ZKLOCK_REQUIRE_REAL=1. It runs two packages at a
## time, because they wait most of the time. The simulation, the models of test/model, and
## the mutants have their own targets.
test-real: deps
	cd test && $(GO) test -count=1 -p 2 $(TIMEOUT) $$($(GO) list ./... | grep -vE '/test/(model|mutants|sim)$$')

## spec: check the models in spec/ with spin, which must refute every broken version. It
## skips the models, and says so, if spin or gcc is missing.
spec: deps
	cd test && $(GO) test -count=1 $(TIMEOUT) ./model

## spec-table: run spec, and write the results into spec/README.md.
spec-table: deps
	cd test && $(GO) test -count=1 $(TIMEOUT) ./model -run TestModels -update

## mutants: break one rule of the product at a time, by an edit in test/mutants. The test
## that the mutant names must fail. It takes about four minutes.
mutants: deps
	cd test && $(GO) test -count=1 $(TIMEOUT) ./mutants

## screenshots: write screenshots of the page after an hour of virtual time, for the
## README. It needs Debian's chromium.
screenshots: deps
	cd test && $(GO) test -count=1 ./delivery/ui -run 'TestScreenshots$$' -screenshots=$(CURDIR)/docs/screenshots

## fuzz: run every fuzz target for FUZZTIME (a duration, or a count such as 20000x), one
## per processor at a time.
fuzz:
	@scripts/fuzz $(FUZZTIME)

## simulate: run SEEDS simulated histories of clients, locks, servers, network, and disk,
## from seed FROM on, on all processors. simulate-race runs every tenth of them with the
## race detector. A run that exercises too little fails.
SEEDS ?= 700
FROM  ?= 1
SIMULATE = ./test/sim -run 'TestSeeds$$' -count=1 -timeout 2h -v
simulate:
	$(GO) test $(SIMULATE) -seeds=$(SEEDS) -from=$(FROM)

simulate-race:
	$(GO) test -race $(SIMULATE) -seeds=$$(( ($(SEEDS) + 9) / 10 )) -from=$(FROM)

## simulate-more: run SEEDS histories with new seeds, add a line with their totals to
## test/sim/testdata/totals.tsv, and print the sum of all lines.
simulate-more:
	$(GO) test $(SIMULATE) -seeds=$(SEEDS) -from=0 -record=$(CURDIR)/test/sim/testdata/totals.tsv
	$(GO) test ./test/sim -run 'TestRecordedTotals$$' -count=1 -v

## packages: build deb and rpm packages of the command for amd64 and arm64 into dist/.
packages:
	packaging/build dist

## release: make all files of a release into dist/release, which must not exist yet, and
## print the tags that scripts/release would create.
release:
	packaging/release dist/release
	scripts/release

clean:
	rm -rf bin dist

# What is built of this tree lies in bin/, which git ignores; tools that are built
# once a version, in the user's cache, so that other checkouts have them too.
SHELL    := /bin/bash
MODULES  := proto descriptors client-lib services
CACHE    := $(if $(XDG_CACHE_HOME)$(HOME),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/benchmark-ai,$(CURDIR)/bin)
TOOLS    := $(CACHE)/tools-$(shell go env GOVERSION 2>/dev/null)
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION)
SERVICES := gateway fetcher executor puller watcher metrics-pusher analyst

# Tools are installed one by one: together their requirements do not resolve.
GOLANGCI := $(TOOLS)/golangci-lint-v2.15.0
BUF      := $(TOOLS)/buf-v1.70.0
GEN_GO   := $(TOOLS)/protoc-gen-go-v1.36.11
GEN_GRPC := $(TOOLS)/protoc-gen-go-grpc-v1.6.2
GEN_REST := $(TOOLS)/protoc-gen-grpc-gateway-v2.32.0
GEN_OAS  := $(TOOLS)/protoc-gen-openapiv2-v2.32.0
SHFMT    := $(TOOLS)/shfmt-v3.14.1

# Google's storage by gRPC, which nobody uses here, costs 20 MB of memory. All that
# is built, linted and tested has the same flags and no path of this machine, and is
# compiled once, wherever the checkout lies; the race detector needs cgo.
export GOFLAGS := -buildvcs=false -tags=disable_grpc_modules -trimpath
export CGO_ENABLED := 0

.DEFAULT_GOAL := help
.PHONY: help build man install demo test test-real images push suite-images locks bench scoreboard observe sizes names fuzz format lint fmt generate generated check ci flaky flags clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bai, baictl, bai-pod and one binary per service into bin/
	@.ci/need go git
	@mkdir -p bin
	cd services && go build -ldflags '$(LDFLAGS)' -o ../bin/ ./cmd/...
	cd client-lib && go build -ldflags '$(LDFLAGS)' -o ../bin/ ./cmd/...

man: build ## manual pages of baictl, in bin/man
	bin/baictl manual man bin/man

install: build ## put bai, baictl and what runs in pods where `go env GOBIN` says, ~/go/bin by default
	@dir=$$(go env GOBIN); dir=$${dir:-$$(go env GOPATH)/bin}; mkdir -p "$$dir" && \
	install bin/bai bin/baictl bin/bai-pod bin/bai-pod-ship "$$dir" && echo "installed bai, baictl, bai-pod and bai-pod-ship in $$dir"

demo: build ## run both sample benchmarks on a platform of their own, and show their metrics
	@cd services && go run ./test/demo -root ..

test: build ## unit, contract, flow and end-to-end tests of all modules
	@.ci/need go git
	@.ci/test

test-real: bin/check ## suites on real servers, which are built and started here; KUBECONFIG takes a cluster of yours
	@.ci/packages plain training
	cd services && ../bin/check real $(if $(BAI_SHORT),,-long)

flaky: bin/check ## all suites N=10 times, also on a busy machine and on one core; RUN=regexp takes some tests, SUITE=a,b some suites
	@.ci/packages plain training
	cd services && ../bin/check flaky -n $(or $(N),10) -run '$(RUN)' -only '$(SUITE)'

bin/images-tool: FORCE
	@mkdir -p bin && cd deploy/images && GOWORK=off go build -o ../../bin/images-tool .

images: build suite-images ## OCI images of the services and of what runs in pods, in bin/images, and of the suites; REGISTRY names them
	bin/images-tool all -bin bin -out bin/images -version $(VERSION) $(if $(REGISTRY),-prefix $(REGISTRY))

push: bin/images-tool ## push the images of bin/images and bin/suite-images to REGISTRY=registry.example.org/benchmark-ai
	@test -n '$(REGISTRY)' || { echo 'say where to push to: REGISTRY=registry.example.org/benchmark-ai' >&2; exit 1; }
	for layout in bin/images bin/suite-images; do bin/images-tool push -from $$layout -to $(REGISTRY) || exit; done

suite-images: bin/images-tool ## OCI images of the suites, in bin/suite-images; ONLY=iperf,fio some of them, SUITE_PREFIX and SUITE_TAG name them
	bin/images-tool suite -dir deploy/images/suite -out bin/suite-images $(if $(ONLY),-only $(ONLY)) $(if $(SUITE_PREFIX),-prefix $(SUITE_PREFIX)) $(if $(SUITE_TAG),-tag $(SUITE_TAG))

locks: bin/images-tool ## lock the Debian packages of the suites' images at the versions of today
	bin/images-tool locks -dir deploy/images/suite $(if $(ONLY),-only $(ONLY))

bench: build ## measure, next to what each is compared to, and write bin/bench.json
	cd services && go run ./test/bench -out ../bin/bench.json

scoreboard: ## measure the detector of changes on series of known truth, and write docs/detector.md
	cd services && go run ./test/scoreboard -out ../docs/detector.md

observe: build ## compare benchmarks with the platform around them and without it, FOR=2m each; ON=local,bed also on two nodes
	cd services && go run ./test/bench -observe $(or $(FOR),2m) -on $(or $(ON),local) -out ../bin/observe.json

sizes: ## count lines, functions, packages, and exported names that nobody uses
	@cd services && go run ./test/sizes

fuzz: ## give each fuzz target FUZZTIME=10s; RUN=regexp takes some of them
	@.ci/need go git
	@.ci/fuzz $(if $(RUN),'$(RUN)')

format: $(GOLANGCI) $(SHFMT) ## say which files are not formatted, and which are too large to be sources
	@git ls-tree -r -l HEAD | awk '$$4 > 5000000 { print "too large for the tree: " $$5; bad = 1 } END { exit bad }'
	@for m in $(MODULES); do (cd $$m && $(GOLANGCI) fmt --diff --config ../.golangci.yaml ./...) || exit 1; done
	@$(SHFMT) -d -i 2 -ci .ci client-lib/shell/bai-emit

names: ## names that are not the field's, by docs/glossary.md and services/test/names/words.txt
	@cd services && go run ./test/names

lint: $(GOLANGCI) $(BUF) names ## linters, names and import rules; the API only grows
	@for m in $(MODULES); do echo "lint $$m"; (cd $$m && $(GOLANGCI) run --allow-parallel-runners --config ../.golangci.yaml ./...) || exit 1; done
	cd proto && $(BUF) lint && $(BUF) breaking --against image.binpb

fmt: $(GOLANGCI) $(SHFMT) ## format Go and shell files
	@for m in $(MODULES); do (cd $$m && $(GOLANGCI) fmt --config ../.golangci.yaml ./...) || exit 1; done
	$(SHFMT) -w -i 2 -ci .ci client-lib/shell/bai-emit

generate: $(BUF) $(GEN_GO) $(GEN_GRPC) $(GEN_REST) $(GEN_OAS) ## make generated files anew
	@mkdir -p bin/plugins
	@ln -sf $(GEN_GO) bin/plugins/protoc-gen-go
	@ln -sf $(GEN_GRPC) bin/plugins/protoc-gen-go-grpc
	@ln -sf $(GEN_REST) bin/plugins/protoc-gen-grpc-gateway
	@ln -sf $(GEN_OAS) bin/plugins/protoc-gen-openapiv2
	cd proto && PATH="$(CURDIR)/bin/plugins:$$PATH" $(BUF) generate
	cd proto && PATH="$(CURDIR)/bin/plugins:$$PATH" $(BUF) generate --template buf.gen.rest.yaml
	cd services && go run ./test/openapi
	cd client-lib && go run ./cmd/baictl manual markdown ../docs
	cd descriptors && GOLDEN=write go test ./internal/reference -run Current
	cd services && GOLDEN=write go test ./internal/store/elastic/schema -run 'TestTheMappings|TestTheDataModel'
	cd services && GOLDEN=write go test ./parsers -run TestTheManual
	cd services && GOLDEN=write go test ./test/tools -run Current

accept-api: $(BUF) ## accept the API as it is now as what later changes must be compatible with
	cd proto && $(BUF) build -o image.binpb

generated: generate ## make generated files anew, and say which, with go.mod files and docs, were not current
	@.ci/check

check: format lint generated ## format, linters, generated files

ci: ## what the continuous integration runs, on a clean clone of HEAD
	@.ci/clone

flags:
	@echo "export GOFLAGS='$(GOFLAGS)' CGO_ENABLED='$(CGO_ENABLED)'"

bin/check: FORCE
	@.ci/need go git
	@mkdir -p bin && go build -C services -o ../bin/check ./test/ci
FORCE:

clean: ## remove what was built of this tree
	rm -rf bin

define tool
	@mkdir -p $(TOOLS) && new=$$(mktemp -d $(TOOLS)/new.XXXXXX) && \
	echo "installing $(notdir $@), once" && GOWORK=off GOBIN=$$new go install $(1) && mv $$new/* $@; state=$$?; rm -rf $$new; exit $$state
endef

$(GOLANGCI):
	$(call tool,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0)
$(BUF):
	$(call tool,github.com/bufbuild/buf/cmd/buf@v1.70.0)
$(GEN_GO):
	$(call tool,google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11)
$(GEN_GRPC):
	$(call tool,google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2)
$(GEN_REST):
	$(call tool,github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-grpc-gateway@v2.32.0)
$(GEN_OAS):
	$(call tool,github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-openapiv2@v2.32.0)
$(SHFMT):
	$(call tool,mvdan.cc/sh/v3/cmd/shfmt@v3.14.1)

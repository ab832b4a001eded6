# Everything that is built or downloaded lies in bin/, which git ignores.
SHELL    := /bin/bash
MODULES  := proto descriptors client-lib services
TOOLS    := $(CURDIR)/bin/tools
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION)
SERVICES := gateway fetcher executor puller watcher metrics-pusher

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

# The race detector needs a C compiler.
RACE := $(shell command -v $$(go env CC 2>/dev/null) >/dev/null 2>&1 && echo -race)

.DEFAULT_GOAL := help
.PHONY: help build man install demo test test-real images bench lint fmt generate check ci clean

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
	@$(if $(RACE),true,echo 'NOTE: no C compiler, so the tests run WITHOUT the race detector. Install gcc to have it.')
	$(if $(RACE),CGO_ENABLED=1 ).ci/test $(RACE)

test-real: ## suites on real servers, which are built and started here; KUBECONFIG takes a cluster of yours
	@.ci/need go git
	.ci/test-real

images: build ## OCI images of the services and of what runs in pods, in bin/images
	cd deploy/images && GOWORK=off go build -o ../../bin/images-tool .
	bin/images-tool all -bin bin -out bin/images -version $(VERSION)

bench: build ## measure, next to what each is compared to, and write bin/bench.json
	cd services && go run ./test/bench -out ../bin/bench.json

lint: $(GOLANGCI) $(BUF) $(SHFMT) ## linters, import rules, formats
	@for m in $(MODULES); do echo "lint $$m"; (cd $$m && $(GOLANGCI) run --config ../.golangci.yaml ./...) || exit 1; done
	cd proto && $(BUF) lint && $(BUF) breaking --against image.binpb
	$(SHFMT) -d -i 2 -ci .ci client-lib/shell/bai-emit

fmt: $(GOLANGCI) $(SHFMT) ## format Go and shell files
	@for m in $(MODULES); do (cd $$m && $(GOLANGCI) fmt --config ../.golangci.yaml ./...) || exit 1; done
	$(SHFMT) -w -i 2 -ci .ci client-lib/shell/bai-emit

generate: $(BUF) $(GEN_GO) $(GEN_GRPC) $(GEN_REST) $(GEN_OAS) ## make generated files anew
	@ln -sf $(notdir $(GEN_GO)) $(TOOLS)/protoc-gen-go
	@ln -sf $(notdir $(GEN_GRPC)) $(TOOLS)/protoc-gen-go-grpc
	@ln -sf $(notdir $(GEN_REST)) $(TOOLS)/protoc-gen-grpc-gateway
	@ln -sf $(notdir $(GEN_OAS)) $(TOOLS)/protoc-gen-openapiv2
	cd proto && PATH="$(TOOLS):$$PATH" $(BUF) generate
	cd proto && PATH="$(TOOLS):$$PATH" $(BUF) generate --template buf.gen.rest.yaml
	cd services && go run ./test/openapi
	cd client-lib && go run ./cmd/baictl manual markdown ../docs
	cd descriptors && GOLDEN=write go test ./internal/reference -run Current
	cd services && GOLDEN=write go test ./internal/store/elastic -run 'TestTheMappings|TestTheDataModel'

accept-api: $(BUF) ## accept the API as it is now as what later changes must be compatible with
	cd proto && $(BUF) build -o image.binpb

check: lint generate ## lint, and that generated files, go.mod files and docs are current
	.ci/check

ci: test check ## what the continuous integration runs

clean: ## remove what was built, not the tools
	find bin -mindepth 1 -maxdepth 1 ! -name tools -exec rm -rf {} +

define tool
	@mkdir -p $(TOOLS)/.new && rm -f $(TOOLS)/.new/*
	GOWORK=off GOBIN=$(TOOLS)/.new go install $(1)
	@mv $(TOOLS)/.new/* $@
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

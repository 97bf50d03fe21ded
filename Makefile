# make demo   sets everything up and runs the program on real faces, without a camera
# make test   sets everything up and runs every test
#
# ARGS are passed to the demo: make demo ARGS='--features pixels'

.DEFAULT_GOAL := help
.PHONY: help setup build models demo test lint bench clean

help:
	@sed -n '/^# make/s/^# //p' Makefile
	@echo 'make build  builds bin/faceauth'
	@echo 'make lint   gofmt, go vet and staticcheck; fails on any finding'
	@echo 'make bench  the benchmarks of docs/results.md'

setup:
	@sh scripts/setup.sh
	@go mod download || { echo 'setup: the Go modules could not be fetched; is there a network?' >&2; exit 1; }

build: setup
	@[ -e "$$(go env GOCACHE)/faceauth-built" ] || echo 'building gocv, which takes a minute the first time'
	@go build -o bin/faceauth ./cmd/faceauth
	@touch "$$(go env GOCACHE)/faceauth-built"

models: build
	@bin/faceauth models install

demo: models
	@bin/faceauth demo $(ARGS)

# The tag turns on gocv's profile of Mats, with which the tests prove that every one is closed.
test: models
	go test -tags matprofile ./...

lint:
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "gofmt would change: $$unformatted" >&2; exit 1; }
	go vet ./...
	go vet -tags matprofile ./internal/cv
	go tool staticcheck ./...

bench: models
	go test -run '^$$' -bench . -benchmem ./online ./pipeline

clean:
	rm -rf bin faceauth-demo faceauth-eval faceauth-report

# make demo   sets everything up and runs the program on real faces, without a camera
# make test   sets everything up and runs every test
#
# ARGS are passed to the demo: make demo ARGS='--features pixels'

.DEFAULT_GOAL := help
.PHONY: help setup setup-login setup-test build models demo test test-all test-pure lint bench clean pam install install-files uninstall

help:
	@sed -n '/^# make/s/^# //p' Makefile
	@echo 'make build  builds bin/faceauth'
	@echo 'make test-all  make test, and the packages without cgo again, without it and under the race detector'
	@echo 'make lint   gofmt, go vet and staticcheck; fails on any finding'
	@echo 'make pam    builds bin/pam_faceauth.so, for logins'
	@echo 'make install, make uninstall   put the program, the service and the PAM module below $$(DESTDIR)$$(prefix); as root'
	@echo 'make bench  the benchmarks of docs/results.md'

# setup, and what logins and tests need beside it.
setup:
	@sh scripts/setup.sh
	@go mod download || { echo 'setup: the Go modules could not be fetched; is there a network? Behind a proxy set HTTPS_PROXY=http://HOST:PORT' >&2; exit 1; }

# What logins, and what the tests need beside that.
setup-login: setup
	@sh scripts/setup.sh login

setup-test: setup
	@sh scripts/setup.sh test

build: setup
	@if [ -e "$$(go env GOCACHE)/faceauth-built" ]; then go build -o bin/faceauth ./cmd/faceauth; else \
		echo 'building faceauth and what it is made of; gocv alone takes a minute or more the first time'; \
		go build -v -o bin/faceauth ./cmd/faceauth; fi
	@touch "$$(go env GOCACHE)/faceauth-built"

models: build
	@bin/faceauth models install

demo: models
	@bin/faceauth demo $(ARGS)

# The tag turns on gocv's profile of Mats, with which the tests prove that every one is closed.
test: setup-test models
	go test -tags matprofile -timeout 30m ./...

# Packages that build without cgo: a program that judges and learns needs no OpenCV.
PURE = ./face ./graph ./maxmargin ./anomaly ./quantized ./online ./sighting ./gallery ./distil ./models ./evaluate ./evaluate/report \
	./calibrate ./replay ./office/... $(shell go list ./tablet/... | grep -v boottest)

test-all: test test-pure
	go test -race -short -timeout 30m $(PURE)

test-pure:
	CGO_ENABLED=0 go test $(PURE)

PAM_MODULE = bin/pam_faceauth.so

prefix = /usr
sysconfdir = /etc
multiarch = $(shell $(CC) -print-multiarch)
libdir = $(prefix)/lib/$(multiarch)
CFLAGS = -O2 -D_FORTIFY_SOURCE=2 -Werror

pam: setup-login
	@mkdir -p $(dir $(PAM_MODULE))
	$(CC) -std=c11 -D_GNU_SOURCE -DSYSCONFDIR='"$(sysconfdir)"' $(CPPFLAGS) -Wall -Wextra -fvisibility=hidden -fstack-protector-strong \
		$(CFLAGS) -fPIC -shared -Wl,-z,relro,-z,now $(LDFLAGS) -o $(PAM_MODULE) tablet/pam/pam_faceauth.c -lpam -lsystemd

# What no camera, no compiler and no network is needed for.
install-files:
	install -d $(DESTDIR)$(prefix)/share/dbus-1/system.d $(DESTDIR)$(prefix)/share/dbus-1/system-services \
		$(DESTDIR)$(prefix)/share/dbus-1/interfaces $(DESTDIR)$(prefix)/share/polkit-1/actions \
		$(DESTDIR)$(prefix)/share/pam-configs $(DESTDIR)$(prefix)/lib/systemd/system $(DESTDIR)$(prefix)/lib/sysusers.d
	install -m 644 tablet/install/faceauth.sysusers $(DESTDIR)$(prefix)/lib/sysusers.d/faceauth.conf
	install -m 644 tablet/install/org.faceauth.conf $(DESTDIR)$(prefix)/share/dbus-1/system.d/
	install -m 644 tablet/bus/org.faceauth.Device.xml $(DESTDIR)$(prefix)/share/dbus-1/interfaces/
	install -m 644 tablet/install/org.faceauth.policy $(DESTDIR)$(prefix)/share/polkit-1/actions/
	install -d $(DESTDIR)$(sysconfdir)/faceauth
	[ -e $(DESTDIR)$(sysconfdir)/faceauth/services ] || install -m 644 tablet/install/services $(DESTDIR)$(sysconfdir)/faceauth/services
	install -m 644 tablet/install/pam-config $(DESTDIR)$(prefix)/share/pam-configs/faceauth
	install -m 644 tablet/install/pam-config-password $(DESTDIR)$(prefix)/share/pam-configs/faceauth-password
	sed 's|@bindir@|$(prefix)/bin|' tablet/install/org.faceauth.service >$(DESTDIR)$(prefix)/share/dbus-1/system-services/org.faceauth.service
	sed 's|@bindir@|$(prefix)/bin|; s|@datadir@|$(prefix)/share|' tablet/install/faceauth.service >$(DESTDIR)$(prefix)/lib/systemd/system/faceauth.service

# It installs what make models has built and fetched, so that root needs neither Go nor a network.
install: install-files
	@[ -x bin/faceauth ] && [ -f bin/pam_faceauth.so ] || { echo 'build first, as yourself: make models pam' >&2; exit 1; }
	install -D -m 755 bin/faceauth $(DESTDIR)$(prefix)/bin/faceauth
	install -D -m 644 bin/pam_faceauth.so $(DESTDIR)$(libdir)/security/pam_faceauth.so
	@dir=$${FACEAUTH_MODELS:-$${XDG_DATA_HOME:-$$(getent passwd "$${SUDO_USER:-$$(id -un)}" | cut -d: -f6)/.local/share}/faceauth/models}; \
	for m in "$$dir"/fr_*.onnx; do [ -f "$$m" ] || { echo "there are no models in $$dir; fetch them first, as yourself: make models" >&2; exit 1; }; \
		install -D -m 644 "$$m" $(DESTDIR)$(prefix)/share/faceauth/models/$$(basename "$$m"); done

uninstall:
	rm -f $(DESTDIR)$(prefix)/share/dbus-1/system.d/org.faceauth.conf $(DESTDIR)$(prefix)/share/dbus-1/interfaces/org.faceauth.Device.xml \
		$(DESTDIR)$(prefix)/share/polkit-1/actions/org.faceauth.policy $(DESTDIR)$(prefix)/share/pam-configs/faceauth \
		$(DESTDIR)$(prefix)/share/pam-configs/faceauth-password $(DESTDIR)$(prefix)/share/dbus-1/system-services/org.faceauth.service \
		$(DESTDIR)$(prefix)/lib/systemd/system/faceauth.service $(DESTDIR)$(prefix)/lib/sysusers.d/faceauth.conf $(DESTDIR)$(prefix)/bin/faceauth \
		$(DESTDIR)$(libdir)/security/pam_faceauth.so
	rm -rf $(DESTDIR)$(prefix)/share/faceauth

lint:
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "gofmt would change: $$unformatted" >&2; exit 1; }
	go vet ./...
	go vet -tags matprofile ./internal/cv
	go tool staticcheck ./...

bench: models
	go test -run '^$$' -bench . -benchmem ./online ./pipeline
	go test -run '^$$' -bench Unlock -benchtime 1x ./cmd/faceauth

clean:
	rm -rf bin faceauth-demo faceauth-eval faceauth-report

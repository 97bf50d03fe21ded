# make demo   sets everything up and runs the program on real faces, without a camera
# make test   sets everything up and runs the quick tests, in a few minutes
#
# ARGS are passed to the demo: make demo ARGS='--features pixels'

.DEFAULT_GOAL := help
SYSTEM_PARTS = test-system-quick test-system-sees test-system-lab
.PHONY: help setup setup-login setup-system build lab results programs models demo test test-root test-system $(SYSTEM_PARTS) test-boot test-all test-race mutants count findings lint sbom bench clean pam pam-module man deb \
	install install-programs install-pam install-models install-docs install-files uninstall

help:
	@sed -n '/^# make/s/^# //p' Makefile
	@echo 'make build  builds bin/faceauth, bin/faceauth-eye, which alone links a decoder, and bin/faceauth-fleet-server'
	@echo 'make lab    builds bin/faceauth-lab'
	@echo 'make test-system  the tests that log in, start a browser and brokers, or look at recordings'
	@echo 'make test-root  requests of several users for logins, and full disks: as root'
	@echo 'make test-boot  logins on a system that boots, nine minutes'
	@echo 'make test-all  every test but these, none shortened: before a release'
	@echo 'make findings  what other programs do that nobody expects, run by hand'
	@echo 'make mutants  breaks guards one after the other, and says which no test notices; make count prints lines'
	@echo 'make lint   gofmt, go vet and staticcheck; fails on any finding'
	@echo 'make pam    builds bin/pam_faceauth.so, for logins'
	@echo 'make man    writes manual pages, completions of shells, licences and the stills of the demo into bin/share'
	@echo 'make deb    builds Debian packages for this release into bin/deb (packaging/README.md)'
	@echo 'make install, make uninstall   put the program, the service and the PAM module below $$(DESTDIR)$$(prefix); as root'
	@echo 'make sbom   lists the modules in each program, in bin/PROGRAM.cdx.json (CycloneDX)'
	@echo 'make bench  the benchmarks of docs/results.md, with PEOPLE=DIR also those of cameras and of other programs; make results makes its tables of recognition again'

# Installs the tools and modules that a build needs.
setup:
	@sh scripts/setup.sh

# The packages for logins, and for the tests.
setup-login: setup
	@sh scripts/setup.sh login

setup-system: setup
	@sh scripts/setup.sh system
	@go run ./internal/fetch || echo 'setup: axe-core is missing: the test that looks for what keeps people from using the page skips'

# The programs. Each has its folder in cmd/, is built into bin/ and installed into $(bindir). A further program belongs
# into this list, and is then built, installed, removed and packaged with the others. MODULE_NAME is the folder of a
# program that is a module of its own. The programs in DOCUMENTED have manual pages and completions.
PROGRAMS = faceauth faceauth-eye faceauth-fleet-server
DOCUMENTED = faceauth faceauth-fleet-server
MODULE_faceauth-lab = lab

# For go build: packages are built with -trimpath and the like.
GO_BUILD =

# With osusergo, package os/user reads /etc/passwd alone: a server that knows other users could delay the daemon for ever,
# and getent can be ended. Linters and tests use the tag as well, so that a package is compiled once for all of them.
TAGS = osusergo

# The caller's C flags are also used for the C and C++ of Go packages. The defaults below are not: Go has its own.
ifneq ($(filter environment command,$(foreach v,CFLAGS CXXFLAGS CPPFLAGS LDFLAGS,$(firstword $(origin $(v))))),)
programs: export CGO_CFLAGS ?= $(CFLAGS)
programs: export CGO_CXXFLAGS ?= $(CXXFLAGS)
programs: export CGO_CPPFLAGS ?= $(CPPFLAGS)
programs: export CGO_LDFLAGS ?= $(LDFLAGS)
endif

BUILT = $$(go env GOCACHE)/faceauth-built
build: setup
	@[ -e "$(BUILT)" ] && said= || said='compiling faceauth, which takes some minutes the first time'; \
		sh scripts/step.sh "$$said" $(MAKE) -s programs man
	@touch "$(BUILT)"

# The program that measures is not needed to recognise people.
lab: setup
	@sh scripts/step.sh 'compiling faceauth-lab' $(MAKE) -s programs PROGRAMS=faceauth-lab

# The work of build, if everything that it needs is installed.
programs:
	$(foreach p,$(PROGRAMS),go $(if $(MODULE_$(p)),-C $(MODULE_$(p)) )build -tags $(TAGS) $(GO_BUILD) \
		-o $(if $(MODULE_$(p)),../)bin/$(p) ./cmd/$(p) &&) true

# make models FROM=TARBALL needs no network.
models: build
	@bin/faceauth models install $(if $(FROM),--from "$(FROM)")

# The demo needs no ONNX Runtime, 114 MB: OpenCV runs the networks, in twice the time.
demo: build
	@bin/faceauth models install --no-runtime
	@bin/faceauth demo $(ARGS)

# Tests sync many small databases to the disk. In memory nothing waits for it, if there is room and programs may run.
# What Go builds is large, and stays on the disk.
TESTS = test test-root test-system $(SYSTEM_PARTS) test-boot test-race
$(TESTS): export GOTMPDIR ?= $(if $(filter environment,$(origin TMPDIR)),$(TMPDIR),/tmp)
$(TESTS): export TMPDIR ?= $(shell sh scripts/tmpdir.sh)

# Packages whose tests link no OpenCV. Their tests are quick, except those whose name begins with TestSystem. All tests
# of the other packages look at pictures, or boot a system, and belong to test-system. $(call quick,-C lab) are those of
# the laboratory.
BLIND = {{$$sees := false}}{{range .Deps}}{{if eq . "gocv.io/x/gocv"}}{{$$sees = true}}{{end}}{{end}}{{if not $$sees}}{{.ImportPath}}{{end}}
quick = $(patsubst %.test,%,$(filter-out %/boottest.test,$(filter %.test,\
	$(shell CGO_ENABLED=0 go $(1) list -e -test -f '$(BLIND)' ./...))))
QUICK = $(or $(call quick),$(error there is no quick package))
TESTED = {{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}
SYSTEM = $(filter-out $(QUICK),$(shell go list -f '$(TESTED)' ./...))

# go test, without vet, which make lint does. Many tests wait, so one more package is tested at once than there are
# processors, and the one that takes longest begins first.
GO_TEST = go test -vet=off -timeout 2h -p $$(($$(nproc) + 1))

# The packages that start goroutines, or whose tests do. In others the race detector has nothing to find, as in tests
# whose name begins with TestPlain.
RACE = ./cmd/faceauth ./eye ./internal/fleet ./internal/office ./internal/office/page ./internal/office/sink ./tablet \
	./internal/socket ./internal/frigate

# Without cgo nothing of OpenCV is linked: faceauth-eye, built by make models, is another program.
test: models
	@CGO_ENABLED=0 $(GO_TEST) -short -skip '^TestSystem' ./cmd/faceauth $(QUICK)
	@CGO_ENABLED=0 $(subst go test,go -C lab test,$(GO_TEST)) -short -skip '^TestSystem' $(call quick,-C lab)

test-race: models
	@$(GO_TEST) -race -short -skip '^Test(System|Plain)' $(RACE)

# The tag matprofile turns on gocv's profile of Mats, with which the tests prove that every Mat is closed. Each part is a
# target, so that make -k runs the others after a part has failed.
SYSTEM_TEST = $(GO_TEST) -tags matprofile,$(TAGS)
SYSTEM_TEST_LAB = $(subst go test,go -C lab test,$(SYSTEM_TEST))

# The packages of these with a test whose name begins so.
with = $(foreach p,$(2),$(if $(shell grep -l '^func $(1)' $(p:github.com/faceauth/faceauth%=.%)/*_test.go),$(p)))
PROGRAMS_FIRST = ./cmd/faceauth $(filter-out %/cmd/faceauth,$(QUICK))

test-system: $(SYSTEM_PARTS)
$(SYSTEM_PARTS): setup-system models

# The tests of cmd/faceauth are each program that they start, and start in a thirtieth of the time without OpenCV. Those
# that look at pictures themselves begin with TestSystemSees.
test-system-quick:
	@CGO_ENABLED=0 $(GO_TEST) -tags $(TAGS) -run '^TestSystem' $(call with,TestSystem,$(PROGRAMS_FIRST))

test-system-sees:
	@$(SYSTEM_TEST) -run '^(TestSystemSees|Example)' $(call with,TestSystemSees,$(PROGRAMS_FIRST))
	@$(SYSTEM_TEST) -short $(SYSTEM)

test-system-lab:
	@$(SYSTEM_TEST_LAB) -short $(filter-out $(call quick,-C lab),$(shell go -C lab list ./...))

# Logins on a system that boots, nine minutes: before a release, and after a change of logins. make test-boot BOOT=quick
# is the part of a minute that waits for no other program's clock. RELEASE=trixie boots Debian 13 in place of a copy of
# this system, from a tree with its programs, which is made each time.
BOOT_QUICK = ^Test(Unit|Exposure|Sandbox|EyesUser|BrokenStore|Console)$$

BOOT_TREE = /var/tmp/faceauth-boot/$(RELEASE)

test-boot: setup-system models
	@$(if $(RELEASE),rm -rf $(BOOT_TREE) && sh packaging/tree.sh $(RELEASE) boot $(BOOT_TREE))
	@$(if $(RELEASE),BASE=$(BOOT_TREE)/root) $(GO_TEST) -tags $(TAGS) $(if $(filter quick,$(BOOT)),-run '$(BOOT_QUICK)') ./internal/boottest

# Every test, none shortened, but those on a booted system: before a release.
test-all: setup-system models
	@$(SYSTEM_TEST) $(filter-out %/boottest,$(shell go list ./...))
	@$(SYSTEM_TEST_LAB) ./...

# What only root can test: the socket of logins, with requests of several users, and full disks.
test-root: models
	@$(GO_TEST) -race -short ./internal/socket
	@CGO_ENABLED=0 $(GO_TEST) -short -run FullDisk ./internal/gallery ./internal/fleet ./internal/store

# The tables of docs/results.md again, from RECORDINGS; a table that differs is an error, or replaced by WRITE=1.
RECORDINGS = ../shared/data/faces

results: build lab
	@sh scripts/results.sh $(RECORDINGS) $(if $(WRITE),--write)

mutants:
	@go run ./internal/mutants

count:
	@go run ./internal/count

# What other programs do that nobody expects (CONTRIBUTING.md).
findings:
	@failed=; for f in findings/*.sh; do echo "$$f"; sh "$$f" || failed="$$failed $$f"; done; \
		[ -z "$$failed" ] || { echo "no longer so, or not to be run here:$$failed"; exit 1; }

PAM_MODULE = bin/pam_faceauth.so

prefix = /usr
bindir = $(prefix)/bin
datadir = $(prefix)/share
sysconfdir = /etc
multiarch = $(shell $(CC) -print-multiarch)
libdir = $(prefix)/lib/$(multiarch)
pamdir = $(libdir)/security
unitdir = $(prefix)/lib/systemd/system
userunitdir = $(prefix)/lib/systemd/user
CFLAGS ?= -O2 -D_FORTIFY_SOURCE=2

pam: setup-login pam-module

pam-module:
	@mkdir -p $(dir $(PAM_MODULE))
	$(CC) -std=c11 -D_GNU_SOURCE -DSYSCONFDIR='"$(sysconfdir)"' $(CPPFLAGS) -Wall -Wextra -Wconversion -Wsign-conversion -Werror -fvisibility=hidden -fstack-protector-strong \
		$(CFLAGS) -fPIC -shared -Wl,-z,relro,-z,now $(LDFLAGS) -o $(PAM_MODULE) tablet/pam/pam_faceauth.c -lpam -lcrypt

# What is installed beside the programs: manual pages and completions, made by a program for this machine even if the
# programs are for another one; the licences of what they link; and the demo's stills, which come with gocv.
man:
	@rm -rf bin/share
	@$(foreach p,$(DOCUMENTED),mkdir -p bin/share/$(p)/faceauth/licences && (cd $(or $(MODULE_$(p)),.) && \
		sh $(CURDIR)/scripts/licences.sh ./cmd/...) >bin/share/$(p)/faceauth/licences/$(p).txt &&) true
	@mkdir -p bin/share/faceauth/faceauth && cp -R "$$(go list -m -f '{{.Dir}}' gocv.io/x/gocv)/contrib/att_faces" \
		bin/share/faceauth/faceauth/demo && chmod -R u+w,a+rX bin/share
	@install -D -m 644 cmd/faceauth-eye/faceauth-eye.1 bin/share/faceauth/man/man1/faceauth-eye.1
	@$(foreach p,$(DOCUMENTED),env -u GOARCH -u CC -u CXX -u PKG_CONFIG \
		SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null)}" \
		go $(if $(MODULE_$(p)),-C $(MODULE_$(p)) )run -tags man,$(TAGS) ./cmd/$(p) "$(CURDIR)/bin/share/$(p)" &&) true

deb:
	@CGO_ENABLED=0 go run ./cmd/faceauth-models
	sh packaging/build.sh bin/deb

# The files that can be installed without a camera, a compiler and a network.
install-files:
	install -d $(DESTDIR)$(datadir)/polkit-1/actions $(DESTDIR)$(datadir)/pam-configs \
		$(DESTDIR)$(unitdir) $(DESTDIR)$(prefix)/lib/sysusers.d $(DESTDIR)$(prefix)/lib/tmpfiles.d \
		$(DESTDIR)$(datadir)/faceauth
	install -m 644 tablet/install/faceauth.sysusers $(DESTDIR)$(prefix)/lib/sysusers.d/faceauth.conf
	install -m 644 internal/office/install/faceauth-office.sysusers $(DESTDIR)$(prefix)/lib/sysusers.d/faceauth-office.conf
	install -m 644 internal/office/install/office.yaml $(DESTDIR)$(datadir)/faceauth/
	sed 's|@bindir@|$(bindir)|g; s|@datadir@|$(datadir)|g' internal/office/install/faceauth-office@.service >$(DESTDIR)$(unitdir)/faceauth-office@.service
	for u in faceauth-fleet-server faceauth-fleet@; do \
		sed 's|@bindir@|$(bindir)|' internal/fleet/install/$$u.service >$(DESTDIR)$(unitdir)/$$u.service || exit 1; done
	install -m 644 tablet/install/faceauth.tmpfiles $(DESTDIR)$(prefix)/lib/tmpfiles.d/faceauth.conf
	sed 's|@bindir@|$(bindir)|' tablet/install/org.faceauth.policy >$(DESTDIR)$(datadir)/polkit-1/actions/org.faceauth.policy
	install -d $(DESTDIR)$(sysconfdir)/faceauth
	[ -e $(DESTDIR)$(sysconfdir)/faceauth/services ] || install -m 644 tablet/install/services $(DESTDIR)$(sysconfdir)/faceauth/services
	install -m 644 tablet/install/pam-config $(DESTDIR)$(datadir)/pam-configs/faceauth
	install -m 644 tablet/install/pam-config-password $(DESTDIR)$(datadir)/pam-configs/faceauth-password
	sed 's|@bindir@|$(bindir)|; s|@datadir@|$(datadir)|' tablet/install/faceauth.service >$(DESTDIR)$(unitdir)/faceauth.service
	sed 's|@bindir@|$(bindir)|; s|@datadir@|$(datadir)|' tablet/install/faceauth-eye@.service >$(DESTDIR)$(unitdir)/faceauth-eye@.service
	install -m 644 tablet/install/faceauth.socket tablet/install/faceauth-root.socket tablet/install/faceauth-eye.socket tablet/install/faceauth-key.service \
		$(DESTDIR)$(unitdir)/
	install -d $(DESTDIR)$(userunitdir)/sockets.target.wants
	install -m 644 tablet/install/faceauth-notify.socket $(DESTDIR)$(userunitdir)/
	sed 's|@bindir@|$(bindir)|' tablet/install/faceauth-notify@.service >$(DESTDIR)$(userunitdir)/faceauth-notify@.service
	ln -sf ../faceauth-notify.socket $(DESTDIR)$(userunitdir)/sockets.target.wants/

# The programs and the module that have been built.
built = [ -x bin/$$f ] || { echo "there is no bin/$$f; build first, as yourself: make models pam" >&2; exit 1; }

install-programs:
	@for f in $(PROGRAMS); do $(built); done
	for p in $(PROGRAMS); do install -D -m 755 bin/$$p $(DESTDIR)$(bindir)/$$p || exit 1; done

install-pam:
	@f=pam_faceauth.so; $(built)
	install -D -m 644 bin/pam_faceauth.so $(DESTDIR)$(pamdir)/pam_faceauth.so

# ONNX Runtime is installed with the networks. Debian packages are made without it: it is for one architecture.
RUNTIME = libonnxruntime.so
# It goes along if it is there; a release has it.
YUNET = face_detection_yunet_2026may.onnx

install-models:
	@dir=$${FACEAUTH_MODELS:-$${XDG_DATA_HOME:-$$(getent passwd "$${SUDO_USER:-$$(id -un)}" | cut -d: -f6)/.local/share}/faceauth/models}; \
	for m in "$$dir"/fr_*.onnx; do [ -f "$$m" ] || { echo "there are no models in $$dir; fetch them first, as yourself: make models" >&2; exit 1; }; \
		install -D -m 644 "$$m" $(DESTDIR)$(datadir)/faceauth/models/$$(basename "$$m") || exit 1; done; \
	[ ! -f "$$dir/$(YUNET)" ] || install -m 644 "$$dir/$(YUNET)" $(DESTDIR)$(datadir)/faceauth/models/; \
	[ -z "$(RUNTIME)" ] || [ ! -f "$$dir/$(RUNTIME)" ] || install -m 644 "$$dir/$(RUNTIME)" $(DESTDIR)$(datadir)/faceauth/models/

install-docs:
	@for p in $(DOCUMENTED); do [ -d bin/share/$$p ] || { echo "there is no bin/share/$$p; build first, as yourself: make man" >&2; exit 1; }; done
	install -d $(DESTDIR)$(datadir)
	umask 022; for p in $(DOCUMENTED); do cp -R bin/share/$$p/. $(DESTDIR)$(datadir)/ || exit 1; done

# It installs what make models has built and fetched, so that root needs neither Go nor a network.
install: install-programs install-pam install-models install-docs install-files

uninstall:
	rm -f $(DESTDIR)$(datadir)/polkit-1/actions/org.faceauth.policy $(DESTDIR)$(datadir)/pam-configs/faceauth \
		$(DESTDIR)$(datadir)/pam-configs/faceauth-password \
		$(DESTDIR)$(unitdir)/faceauth.service $(DESTDIR)$(unitdir)/faceauth.socket $(DESTDIR)$(unitdir)/faceauth-root.socket $(DESTDIR)$(unitdir)/faceauth-eye@.service $(DESTDIR)$(unitdir)/faceauth-eye.socket \
		$(DESTDIR)$(unitdir)/faceauth-key.service \
		$(DESTDIR)$(userunitdir)/faceauth-notify.socket $(DESTDIR)$(userunitdir)/faceauth-notify@.service \
		$(DESTDIR)$(userunitdir)/sockets.target.wants/faceauth-notify.socket \
		$(DESTDIR)$(unitdir)/faceauth-office@.service \
		$(DESTDIR)$(unitdir)/faceauth-fleet-server.service $(DESTDIR)$(unitdir)/faceauth-fleet@.service \
		$(DESTDIR)$(prefix)/lib/sysusers.d/faceauth-office.conf \
		$(DESTDIR)$(prefix)/lib/sysusers.d/faceauth.conf \
		$(DESTDIR)$(prefix)/lib/tmpfiles.d/faceauth.conf \
		$(DESTDIR)$(datadir)/man/man1/faceauth.1 $(DESTDIR)$(datadir)/man/man1/faceauth-*.1 \
		$(DESTDIR)$(pamdir)/pam_faceauth.so
	rm -f $(foreach p,$(DOCUMENTED) faceauth-lab,$(DESTDIR)$(datadir)/bash-completion/completions/$(p) \
		$(DESTDIR)$(datadir)/zsh/vendor-completions/_$(p) $(DESTDIR)$(datadir)/fish/vendor_completions.d/$(p).fish)
	rm -f $(PROGRAMS:%=$(DESTDIR)$(bindir)/%) $(DESTDIR)$(bindir)/faceauth-lab
	rm -rf $(DESTDIR)$(datadir)/faceauth $(foreach p,$(DOCUMENTED) faceauth-lab,$(DESTDIR)$(datadir)/doc/$(p))

PORTABLE := ./quantized ./online ./face ./sighting

lint:
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "gofmt would change: $$unformatted" >&2; exit 1; }
	go vet -tags $(TAGS) ./...
	go vet -tags matprofile,$(TAGS) ./internal/cv
	go tool -modfile=scripts/lint/go.mod staticcheck -tags $(TAGS) ./...
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
	go -C lab vet -tags $(TAGS) ./...
	check=$$(go tool -modfile=scripts/lint/go.mod -n staticcheck) && cd lab && "$$check" -tags $(TAGS) ./...
	@# The parts that need no OpenCV are for other systems, too.
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go build $(PORTABLE)
	GOOS=js GOARCH=wasm CGO_ENABLED=0 go build $(PORTABLE)

# The modules in the programs, as CycloneDX. Go checks the tool's hash.
sbom:
	@for f in $(PROGRAMS); do $(built); \
		go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin -json -licenses \
		-version "$$(sed -n 's/^const Version = "\(.*\)"$$/\1/p' internal/version/version.go)" -output bin/$$f.cdx.json bin/$$f || exit 1; done

bench: models
	go test -run '^$$' -bench . -benchmem ./online ./pipeline
	@[ -z "$(PEOPLE)" ] || $(MAKE) -s programs
	@[ -z "$(PEOPLE)" ] || { lab/eyes.sh "$$(find "$(PEOPLE)" -mindepth 1 -maxdepth 1 -type d -print -quit)" 4 16; \
		lab/albums/album.sh "$(PEOPLE)"; lab/replay.sh "$(PEOPLE)"; }

clean:
	rm -rf bin faceauth-demo faceauth-eval faceauth-report

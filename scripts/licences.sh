#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the licences of Go and of all modules that the packages named on the command line link, as those licences ask
# of whoever hands out programs: scripts/licences.sh ./cmd/faceauth ./cmd/faceauth-eye
set -eu

printf '%s\n\n' 'The programs hold Go and the modules below, which come with these licences.'
printf '==== Go\n\n' && cat "$(go env GOROOT)/LICENSE"
go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' "$@" | sort -u |
	while read -r module version dir; do
		[ "$module" != github.com/faceauth/faceauth ] || continue # in the module of the laboratory
		printf '\n==== %s %s\n' "$module" "$version"
		found=''
		for file in "$dir"/[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]* "$dir"/COPYING* "$dir"/NOTICE* "$dir"/PATENTS*; do
			[ ! -f "$file" ] || { printf '\n' && cat "$file" && found=yes; }
		done
		[ -n "$found" ] || { echo "licences: $module has no licence in $dir" >&2 && exit 1; }
	done
printf '\n==== lit-html 3.3.3, in the page of an office\n\n' && cat "$(dirname "$0")/../internal/office/page/static/lit/LICENSE"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Puts the line of the licence into each Go, C and shell file of the project that lacks it. A second run changes
# nothing.
set -eu

# The shell reads a script while it runs, and this script also changes itself. So the whole script is read first.
main() {
	cd "$(git rev-parse --show-toplevel)"
	line='SPDX-License-Identifier: Apache-2.0'
	new=$(mktemp)
	trap 'rm -f "$new"' EXIT
	git ls-files --cached --others --exclude-standard | while read -r file; do
		if [ ! -f "$file" ] || [ -L "$file" ]; then continue; fi
		first=$(head -c 80 "$file" | tr -d '\000' | head -n 1)
		case $file in
		*/testdata/*) continue ;; # what tests compare with
		*.go | *.c | *.h) mark='//' ;;
		*.sh) mark='#' ;;
		*) case $first in
			'#!'*/sh | '#!'*/bash | '#!'*' sh' | '#!'*' bash') mark='#' ;;
			*) continue ;;
			esac ;;
		esac
		head -n 2 "$file" | grep -qF "$line" && continue
		case $mark$first in
		'##!'*) # after the line that names the shell
			{ head -n 1 "$file" && printf '# %s\n' "$line" && tail -n +2 "$file"; } >"$new" ;;
		'#'*) { printf '# %s\n' "$line" && cat "$file"; } >"$new" ;;
		*) # an empty line, so that it is no part of the package's documentation
			{ printf '// %s\n\n' "$line" && cat "$file"; } >"$new" ;;
		esac
		cat "$new" >"$file" # which keeps its mode
	done
}

main
exit

#!/usr/bin/env bash
# Runs clang-format with the given arguments over every C file: `-i` formats, `--dry-run -Werror` checks.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v clang-format >/dev/null || {
    echo "clang-format is not installed (Debian: apt-get install clang-format)" >&2
    exit 1
}
folders=()
for folder in src include tests bench; do
    [ -d "$folder" ] && folders+=("$folder")
done
find "${folders[@]}" -name node_modules -prune -o -name '*.[ch]' -print0 |
    xargs -0 -r -n 8 -P "$(nproc)" clang-format --style=file "$@"

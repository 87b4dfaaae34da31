#!/usr/bin/env bash
# Runs every fuzz entry of a clang build for some seconds: scripts/fuzz.sh BUILD_DIR SECONDS [NAME...]
#
# New inputs go to BUILD_DIR/corpus/NAME; a crash file is left in BUILD_DIR/crashes. Copy it to
# tests/fuzz/corpus/NAME when the fault is mended: `make test` replays that folder.
set -euo pipefail
cd "$(dirname "$0")/.."

build=$1 seconds=$2
shift 2
failed=0 n=0
for source in tests/fuzz/fuzz_*.c; do
    [ -e "$source" ] || break
    name=$(basename "$source" .c)
    name=${name#fuzz_}
    [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
    n=$((n + 1))
    mkdir -p "$build/corpus/$name" "$build/crashes"
    stored=()
    [ -d "tests/fuzz/corpus/$name" ] && stored=("tests/fuzz/corpus/$name")
    echo "fuzz $name for $seconds s"
    entry=$(find "$build" -name "fuzz_$name" -type f -perm -u+x | head -n 1)
    "$entry" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
        -artifact_prefix="$build/crashes/$name-" "$build/corpus/$name" ${stored[@]+"${stored[@]}"} \
        >"$build/crashes/$name.log" 2>&1 && tail -n 6 "$build/crashes/$name.log" ||
        { failed=1; tail -n 40 "$build/crashes/$name.log"; }
done
[ "$n" -gt 0 ] || { echo "no fuzz entry in tests/fuzz" >&2; exit 1; }
exit "$failed"

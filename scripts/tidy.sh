#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy over the C files of src/: scripts/tidy.sh BUILD_DIR.
# BUILD_DIR needs a compile_commands.json. Without clang-tidy this step is left out, and says so.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v clang-tidy >/dev/null || { echo "tidy: clang-tidy is not installed; left out"; exit 0; }
[ -e "$1/compile_commands.json" ] || { echo "tidy: $1 is not configured; run \`make build\` first" >&2; exit 1; }

# Only what the build compiles: a room that is left out there has no flags here.
/usr/bin/python3 - "$1/compile_commands.json" <<'PY' | xargs -0 -r -n 2 -P "$(nproc)" clang-tidy -p "$1" --quiet --warnings-as-errors='*' 2>&1 | grep -vE '^[0-9]+ warnings? (generated|treated)' || [ "${PIPESTATUS[1]}" = 0 ]
import json, os, sys
root = os.getcwd() + "/src/"
files = sorted({c["file"] for c in json.load(open(sys.argv[1])) if c["file"].startswith(root) and c["file"].endswith(".c")})
sys.stdout.write("".join(f + "\0" for f in files))
PY

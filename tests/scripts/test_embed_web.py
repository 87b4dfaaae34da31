"""scripts/embed_web.py: the table, compiled, has the page's bytes."""

import hashlib
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["INKSTONE_SOURCE_DIR"]
SCRIPT = os.path.join(SOURCE, "scripts", "embed_web.py")

# Prints every row of the table, then writes its bytes to a file named by the row's number.
READER = r"""
#include "server/web_assets.h"

#include <stdio.h>

int main(void)
{
    for (size_t i = 0; i < web_assets_n; i++) {
        char name[32];

        snprintf(name, sizeof(name), "%zu", i);
        FILE *fp = fopen(name, "wb");
        if (!fp || fwrite(web_assets[i].data, 1, web_assets[i].len, fp) != web_assets[i].len || fclose(fp) != 0)
            return 1;
        printf("%s|%s|%s\n", web_assets[i].path, web_assets[i].type, web_assets[i].etag);
    }
    return 0;
}
"""


def embed(folder, pages):
    """[(path, type, etag, bytes)] as a C program sees them."""
    page = os.path.join(folder, "page")
    for path, data in pages.items():
        full = os.path.join(page, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as f:
            f.write(data)
    subprocess.run([sys.executable, SCRIPT, page if pages else "--empty", os.path.join(folder, "assets.c")], check=True)
    with open(os.path.join(folder, "reader.c"), "w", encoding="ascii") as f:
        f.write(READER)
    subprocess.run(["cc", "-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", os.path.join(SOURCE, "src"),
                    "reader.c", "assets.c", "-o", "reader"], cwd=folder, check=True)
    lines = subprocess.run(["./reader"], cwd=folder, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = []
    for i, line in enumerate(lines):
        with open(os.path.join(folder, str(i)), "rb") as f:
            rows.append((*line.split("|"), f.read()))
    return rows


class EmbedWeb(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_every_byte_value_survives(self):
        pages = {"index.html": "<p>砚</p>".encode(), "assets/a.js": bytes(range(256)) * 3, "assets/empty.css": b""}
        rows = embed(self.folder.name, pages)
        html = "text/html; charset=utf-8"

        self.assertEqual([(r[0], r[1]) for r in rows], [
            ("/", html), ("/assets/a.js", "text/javascript; charset=utf-8"),
            ("/assets/empty.css", "text/css; charset=utf-8"), ("/index.html", html)])
        for path, _, etag, data in rows:
            wanted = pages["index.html" if path == "/" else path[1:]]
            self.assertEqual(data, wanted)
            self.assertEqual(etag, '"' + hashlib.sha256(wanted).hexdigest()[:20] + '"')

    def test_without_a_page_the_table_is_empty(self):
        self.assertEqual(embed(self.folder.name, {}), [])

    def test_a_file_of_unknown_type_is_refused_by_name(self):
        page = self.folder.name
        for name in ("index.html", "secrets.pem"):
            with open(os.path.join(page, name), "wb") as f:
                f.write(b"x")
        run = subprocess.run([sys.executable, SCRIPT, page, os.path.join(page, "out.c")],
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("secrets.pem", run.stderr)
        self.assertFalse(os.path.exists(os.path.join(page, "out.c")))


unittest.main()

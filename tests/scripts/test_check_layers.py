"""scripts/check_layers.py finds what it promises to find, and nothing in this project's own files."""

import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["INKSTONE_SOURCE_DIR"]
SCRIPT = os.path.join(SOURCE, "scripts", "check_layers.py")


def findings(files):
    """The lines that the script prints for a tree of {path: text}, without the summary."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as f:
                f.write(text)
        run = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)
        lines = run.stdout.splitlines()[:-1]
        assert run.returncode == (1 if lines else 0), run
        return lines


def refused(rows):
    """Which rows (path, text) give a finding, all judged in one run: a.c becomes a0.c, a1.c, ... by row; the others are named once."""
    files = {}
    for i, (path, text) in enumerate(rows):
        path = path.replace("/a.c", f"/a{i}.c").replace("/test_a.c", f"/test_a{i}.c")
        files[path] = files.get(path, "") + text + "\n"
    complained = {line.split(":")[0] for line in findings(files)}
    return [path in complained for path in files]


class CheckLayers(unittest.TestCase):
    def test_this_project_keeps_its_layers(self):
        run = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_an_include_is_judged_by_both_rooms(self):
        rows = [
            ("src/engine/a.c", '#include "model/model.h"', True),
            ("src/engine/a.c", '#include "base/buf.h"', True),
            ("src/engine/a.c", '#include "token/tokenizer.h"', False),
            ("src/engine/a.c", '#include "task/task.h"', False),
            ("src/base/a.c", '#include "model/model.h"', False),
            ("src/server/a.c", '#include "engine/engine.h"', False),
            ("src/cli/a.c", '#include "convert/import.h"', True),
            ("src/cli/a.c", '#include "token/tokenizer.h"', False),
            ("src/main.c", '#include "cli/cli.h"\n#include "task/task.h"', False),
            ("src/engine/a.c", "#include <ggml.h>", False),
            ("src/model/a.c", "#include <ggml.h>", True),
            ("src/model/a.c", "#include <omp.h>", False),
            ("src/model/linear.c", "#include <omp.h>", True),
            ("src/base/json.c", "#include <jansson.h>", True),
            ("src/base/buf.c", "#include <jansson.h>", False),
            ("src/task/a.c", "#include <jansson.h>", False),
            ("src/convert/a.c", "#include <zip.h>", True),
            ("src/token/a.c", "#include <stdlib.h>", True),
            ("src/token/a.c", "#include <sys/stat.h>", True),
            ("src/token/a.c", "#include <some_new_library.h>", False),
            ("src/token/a.c", '#include "tokenizer.h"', False),
            ("src/token/a.c", '/* #include "task/task.h" */', True),
            ("src/elsewhere/a.c", "#include <stdlib.h>", False),
        ]
        for (path, line, allowed), bad in zip(rows, refused([r[:2] for r in rows]), strict=True):
            with self.subTest(path=path, line=line):
                self.assertEqual(not bad, allowed)

    def test_a_file_includes_its_own_header_first(self):
        header = {"src/base/a.h": "int f(void);\n"}
        good = '#include "base/a.h"\n\n#include <stdlib.h>\n'
        bad = '#include <stdlib.h>\n#include "base/a.h"\n'
        self.assertEqual(findings({**header, "src/base/a.c": good}), [])
        self.assertEqual(findings({**header, "src/base/a.c": bad}), ['src/base/a.c:1: include "base/a.h" first'])

    def test_a_call_is_judged_by_name_and_place(self):
        rows = [
            ("src/token/a.c", "strcpy(a, b);", False),
            ("tests/unit/token/test_a.c", "strcpy(a, b);", False),
            ("tests/unit/token/test_a.c", "p = malloc(3);", True),
            ("src/token/a.c", "p = malloc(3);", False),
            ("src/base/arena.c", "p = malloc(3);", True),
            ("src/token/a.c", "p = ink_strdup(s);", True),
            ("src/token/a.c", "snprintf(a, 3, s);", True),
            ("src/token/a.c", 'printf("x");', False),
            ("src/cli/a.c", 'printf("x");', True),
            ("src/token/a.c", 'fprintf(stderr, "x");', False),
            ("src/token/a.c", 'fprintf(file, "x");', True),
            ("src/token/a.c", "ops->exit(3);", True),
            ("src/token/a.c", "exit(3);", False),
            ("src/token/a.c", "/* strcpy(a, b) */", True),
            ("src/token/a.c", 's = "strcpy(a, b)";', True),
        ]
        bodies = [(path, "void f(void)\n{\n" + line + "\n}") for path, line, _ in rows]
        for (path, line, allowed), bad in zip(rows, refused(bodies), strict=True):
            with self.subTest(path=path, line=line):
                self.assertEqual(not bad, allowed)


unittest.main()

#!/usr/bin/env python3
"""The golden shape of full mT5-base size: 582 million made-up weights, written for this test and removed again.

    test_base.py [TYPE...]

prints what was observed. Without arguments: f32 against the tolerance, and the loss of i8.
"""

import os
import shutil
import sys
import time

import golden
from golden import Failed, Folder, Golden, compare_texts, import_model, make_checkpoint
from test_shapes import check_exact, check_loss, is_exact

ROOM = 8 * 10**9        # bytes: checkpoint, and one file at a time


def test():
    g = Golden("base")
    with Folder() as folder:
        free = shutil.disk_usage(folder).free
        if free < ROOM:
            raise Failed("%s has %.1f GB free; this test writes %.1f GB" % (folder, free / 1e9, ROOM / 1e9))
        start = time.monotonic()
        checkpoint = make_checkpoint(g, folder)
        print("base: checkpoint written in %.1f s" % (time.monotonic() - start))
        for kind in sys.argv[1:] or ("f32", "i8"):
            start = time.monotonic()
            model = import_model(checkpoint, kind, folder)
            print("base     %-4s  imported in %.1f s, %.2f GB" % (kind, time.monotonic() - start, os.path.getsize(model) / 1e9))
            (check_exact if is_exact("base", kind) else check_loss)(g, kind, model)
            if kind == "f32":
                compare_texts(g, model)
            os.unlink(model)


if __name__ == "__main__":
    golden.main(test)

#!/usr/bin/env python3
"""What -m means: paths, names, folders that are imported on first use."""

import json
import os
import signal
import subprocess
import time

import cli


class Model(cli.Case):
    def name_of(self, *args, **keywords):
        return self.answer("tokenize", "--json", *args, "a", **keywords)["model"]

    def test_a_path_with_a_slash(self):
        os.symlink(cli.model(), self.path("some name.gguf"))
        self.assertEqual(self.name_of("-m", self.path("some name.gguf")), "some name")
        self.assertEqual(self.name_of("-m", "./some name.gguf", cwd=self.folder), "some name")
        self.assertEqual(self.name_of("--model=some name.gguf", cwd=self.folder), "some name")
        self.refused(1, "no such file or folder", "tokenize", "-m", "./nosuch.gguf", "a", cwd=self.folder)

    def test_names_are_looked_for_in_order(self):
        places = [("INKSTONE_MODELS", "one", ""), ("XDG_DATA_HOME", "two", "inkstone/models")]
        for variable, folder, below in places:
            full = os.path.join(self.path(folder), below)
            os.makedirs(full)
            os.symlink(cli.model(), os.path.join(full, "same.gguf"))
            os.symlink(cli.model(), os.path.join(full, "only-%s.gguf" % folder))
            self.env[variable] = self.path(folder)
        for name in ("same", "only-one", "only-two"):
            self.assertEqual(self.name_of("-m", name, cwd="/"), name)
        os.unlink(self.path("one/same.gguf"))
        with open(self.path("one/same.gguf"), "wb") as f:
            f.write(b"broken")      # the first place wins, even so
        self.refused(1, "one/same.gguf", "tokenize", "-m", "same", "a")
        said = self.refused(1, 'no model "nosuch"; found: ', "tokenize", "-m", "nosuch", "a")
        self.assertIn("only-one", said)

    def test_without_a_name_the_first_usable_file(self):
        os.makedirs(self.path("models"))
        with open(self.path("models/a.gguf"), "wb") as f:
            f.write(b"GGUF")
        os.symlink(cli.model(), self.path("models/b.gguf"))
        os.symlink(cli.model(), self.path("models/c.gguf"))
        self.env["INKSTONE_MODELS"] = self.path("models")
        self.assertEqual(self.answer("rewrite", "--json", "-n", "1", "--seed", "1", cli.TEXT)["model"], "b")

    def test_files_that_are_no_model(self):
        for name, content, pattern in (("empty.gguf", b"", "empty.gguf"), ("text.gguf", b"hello, this is text" * 100, "text.gguf")):
            with open(self.path(name), "wb") as f:
                f.write(content)
            for command in (["rewrite"], ["tokenize"], ["score", "--source-ids", "1", "--target-ids"]):
                self.refused(1, pattern, command[0], "-m", self.path(name), *command[1:], "1")
        with open(cli.model(), "rb") as f, open(self.path("cut.gguf"), "wb") as out:
            out.write(f.read()[:-1000])
        self.refused(1, "cut.gguf", "rewrite", "-m", self.path("cut.gguf"), cli.TEXT)
        self.refused(1, "no config.json in this folder", "rewrite", "-m", self.folder, cli.TEXT)
        self.refused(1, "an empty name", "rewrite", "-m", "", cli.TEXT)


class Folder(cli.Case):
    """Hugging Face folders."""

    def setUp(self):
        super().setUp()
        self.checkpoint = cli.made_up_folder(self.path("my-model"))
        self.imports = self.path(".cache/inkstone/imports")

    def kept(self):
        return sorted(n for n in os.listdir(self.imports) if n.endswith(".gguf"))

    def rewrite(self, *args, **keywords):
        done = self.run_program("rewrite", "-m", self.checkpoint, "-n", "1", "--seed", "1", "--json", *args, cli.TEXT, **keywords)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr.decode("utf-8")

    def test_a_folder_is_imported_once(self):
        first, said = self.rewrite()
        self.assertEqual(first["model"], "my-model")
        self.assertIn("imported", said)
        self.one_line(said)
        second, said = self.rewrite()
        self.assertEqual(said, "")
        self.assertEqual(first["rewrites"], second["rewrites"])
        self.assertEqual(len(self.kept()), 1)

    def test_another_path_to_the_same_folder_is_the_same(self):
        self.rewrite()
        done = self.run_program("tokenize", "-m", "../my-model/", "a", cwd=self.checkpoint)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_a_changed_folder_is_imported_anew_and_the_old_import_removed(self):
        self.rewrite()
        before = self.kept()
        path = os.path.join(self.checkpoint, "config.json")
        os.utime(path, (1, 1))
        _, said = self.rewrite()
        self.assertIn("imported", said)
        self.assertEqual(len(self.kept()), 1)
        self.assertNotEqual(self.kept(), before)

    def test_types_are_kept_side_by_side(self):
        self.rewrite()
        _, said = self.rewrite("--type", "f32")
        self.assertIn("as f32", said)
        self.assertEqual(len(self.kept()), 2)
        for args in ([], ["--type", "f32"]):
            self.assertEqual(self.rewrite(*args)[1], "")

    def test_two_processes_import_once(self):
        command = [cli.PROGRAM, "tokenize", "-m", self.checkpoint, "a"]
        ps = [subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(4)]
        said = [p.communicate(timeout=cli.PATIENCE)[1].decode() for p in ps]
        self.assertEqual([p.returncode for p in ps], [0] * 4, said)
        self.assertEqual("".join(said).count("imported"), 1, said)
        self.assertEqual(len(self.kept()), 1)

    def test_a_broken_folder_leaves_nothing_behind(self):
        weights = os.path.join(self.checkpoint, "model.safetensors")
        with open(weights, "r+b") as f:
            f.truncate(os.path.getsize(weights) - 5000)
        self.refused(1, "model.safetensors", "rewrite", "-m", self.checkpoint, cli.TEXT)
        self.assertEqual([n for n in os.listdir(self.imports) if not n.endswith(".lock")], [])

    def test_ctrl_c_leaves_nothing_behind(self):
        for wait in (0.02, 0.05, 0.1, 0.2, 0.3):
            p = subprocess.Popen([cli.PROGRAM, "tokenize", "-m", self.checkpoint, "--type", "q4_k", "a"], env=self.env,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            time.sleep(wait)
            p.send_signal(signal.SIGINT)
            said = p.communicate(timeout=cli.PATIENCE)[1].decode()
            self.assertIn(p.returncode, (130, 0, -signal.SIGINT), said)     # -SIGINT: before main()
            left = os.listdir(self.imports) if os.path.isdir(self.imports) else []
            self.assertEqual([n for n in left if n.endswith(".tmp")], [], said)

    def test_what_a_killed_import_left_is_removed_by_the_next(self):
        self.rewrite()
        stale = os.path.join(self.imports, self.kept()[0] + ".abcdef.tmp")
        open(stale, "w").close()
        os.utime(os.path.join(self.checkpoint, "config.json"), (1, 1))
        self.rewrite()
        self.assertFalse(os.path.exists(stale))

    def test_a_cache_folder_that_cannot_be_written(self):
        with open(self.path("file"), "w"):
            pass
        self.env["XDG_CACHE_HOME"] = self.path("file")
        self.refused(1, "cache folder for the import", "rewrite", "-m", self.checkpoint, cli.TEXT)

    def test_a_folder_can_be_served(self):
        with cli.Server(self, "-m", self.checkpoint) as server:
            self.assertEqual([m["id"] for m in json.loads(server.get("/v1/models")[1])["data"]], ["my-model"])


if __name__ == "__main__":
    cli.main()

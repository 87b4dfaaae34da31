#!/usr/bin/env python3
"""`inkstone rewrite --input FILE --output FILE`: tables, JSON Lines and text files, and going on after any kind of end."""

import csv
import fcntl
import io
import json
import os
import random
import re
import resource
import signal
import subprocess
import time
import unittest

import cli

OURS = ["rewrite_1", "rewrite_2", "rewrite_seed", "rewrite_error"]
AWKWARD = ["他说“好”，然后走了。", "一行\n又一行", "带,逗号", '带"引号"', "a\tb", " 两边有空格 "]


def table(rows, names=("id", "text", "stars"), end="\r\n", delimiter=","):
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=end, delimiter=delimiter).writerows([names, *rows])
    return out.getvalue()


def numbered(texts):
    return [[i, t, i % 5 + 1] for i, t in enumerate(texts)]


class Files(cli.Case):
    """Works on files of the test's folder; the model's weights are random, and two rewrites of a few tokens are made."""

    options = ["-n", "2", "--max-tokens", "6", "--allow-same"]

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode("utf-8"))
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def args(self, source, output, *more):
        return ["rewrite", "-m", cli.model(), *self.options, "--input", self.path(source), "--output", self.path(output), *more]

    def rewrite(self, source, output, *more, status=0, **keywords):
        """What was said on stderr."""
        done = self.run_program(*self.args(source, output, *more), **keywords)
        said = done.stderr.decode("utf-8")
        self.assertEqual(done.returncode, status, said)
        self.assertEqual(done.stdout, b"")
        return said

    def no(self, pattern, source, output, *more):
        return self.refused(1, pattern, *self.args(source, output, *more))

    def rows(self, name, delimiter=","):
        data = self.read(name).decode("utf-8")
        return list(csv.reader(io.StringIO(data, newline=""), delimiter=delimiter, strict=True))

    def json_lines(self, name):
        return [json.loads(line) for line in self.read(name).decode("utf-8").split("\n")[:-1]]


class Forms(Files):
    def test_a_table_keeps_its_columns_byte_for_byte(self):
        for end in ("\r\n", "\n"):
            with self.subTest(end):
                lines = ["\ufeffid,\"text\",\"the, stars\"%s" % end,
                         "1,这家餐厅的味道非常好。,\"5\"%s" % end,
                         "\"2\",\"一行\n又\"\"一\"\"行\", x y %s" % end,
                         end,
                         "003,今天下午三点开会。,%s" % end]
                self.write("in.csv", "".join(lines))
                self.assertEqual(self.rewrite("in.csv", "out.csv", "--seed", "5", "--force"), "")
                data = self.read("out.csv").decode("utf-8")
                self.assertTrue(data.startswith(lines[0][:-len(end)] + ",rewrite_1,rewrite_2,rewrite_seed,rewrite_error" + end))
                for line in (lines[1], lines[2], lines[4]):
                    self.assertIn(end + line[:-len(end)] + ",", data)
                self.assertTrue(data.endswith(end))
                rows = self.rows("out.csv")
                self.assertEqual([len(r) for r in rows], [7, 7, 7, 7])     # the empty line is no row
                self.assertEqual(rows[1][5], "5")
                for r in rows[1:]:
                    self.assertTrue(r[3] and r[4], r)
                    self.assertEqual(r[6], "")

    def test_texts_are_those_of_the_lines_of_standard_input(self):
        texts = cli.TEXTS * 3
        self.write("in.csv", table(numbered(texts)))
        self.rewrite("in.csv", "out.csv", "--seed", "11")
        lines = self.succeed("rewrite", "-m", cli.model(), *self.options, "--seed", "11", "-", input="".join(t + "\n" for t in texts))
        for row, line in zip(self.rows("out.csv")[1:], map(json.loads, lines.splitlines())):
            self.assertEqual(row[3:5], [c["text"] for c in line["rewrites"]])
            self.assertEqual(row[5], str(line["seed"]))

    def test_awkward_texts_survive(self):
        self.write("in.csv", table(numbered(AWKWARD)))
        self.write("in.tsv", table(numbered(AWKWARD), delimiter="\t"))
        self.write("in.jsonl", "".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(AWKWARD)))
        self.rewrite("in.csv", "a.csv", "--seed", "1")
        self.rewrite("in.tsv", "b.tsv", "--seed", "1")
        self.rewrite("in.csv", "c.tsv", "--seed", "1")
        self.rewrite("in.jsonl", "d.jsonl", "--seed", "1")
        self.rewrite("in.csv", "e.jsonl", "--seed", "1")
        want = self.rows("a.csv")
        self.assertEqual([r[1] for r in want[1:]], AWKWARD)
        self.assertEqual(self.rows("b.tsv", "\t"), want)
        self.assertEqual(self.rows("c.tsv", "\t"), want)
        for name in ("d.jsonl", "e.jsonl"):
            got = self.json_lines(name)
            self.assertEqual([r["text"] for r in got], AWKWARD)
            self.assertEqual([[c["text"] for c in r["rewrites"]] for r in got], [r[3:5] for r in want[1:]])
            self.assertEqual([str(r["rewrite_seed"]) for r in got], [r[5] for r in want[1:]])
        self.assertEqual([(r["id"], r["stars"]) for r in self.json_lines("e.jsonl")], [(r[0], r[2]) for r in want[1:]])

    def test_json_lines_keep_their_other_fields_byte_for_byte(self):
        lines = ['{"review": "%s", "price": 1.10, "n": 9, "seed": 4, "tags": [ ] , "\\u6587": "\\u6587"}' % cli.TEXTS[0],
                 '{"review":"%s"} ' % cli.TEXTS[1], "", '"%s"' % cli.TEXTS[2]]
        self.write("in.ndjson", "\r\n".join(lines))
        self.rewrite("in.ndjson", "out.jsonl", "--column", "review", "--seed", "3")
        data = self.read("out.jsonl").decode("utf-8").splitlines()
        self.assertEqual(len(data), 3)
        self.assertTrue(data[0].startswith(lines[0][:-1] + ',"rewrites":[{"index":0,'), data[0])
        self.assertTrue(data[1].startswith(lines[1][:-2] + ',"rewrites":['), data[1])
        self.assertTrue(data[2].startswith('{"review":' + lines[3] + ',"rewrites":['), data[2])
        for line in map(json.loads, data):
            self.assertEqual(len(line["rewrites"]), 2)      # n, seed and others are data, not options
            self.assertEqual(list(line["rewrites"][0]), ["index", "text", "finish_reason", "score"])
            self.assertNotIn("rewrite_error", line)
        self.assertEqual(json.loads(data[0])["rewrite_seed"], 3)

    def test_details_fit_json_lines_only(self):
        self.write("in.txt", cli.TEXT + "\n")
        self.rewrite("in.txt", "out.jsonl", "--details", "--top", "2")
        self.assertEqual(len(self.json_lines("out.jsonl")[0]["rewrites"][0]["tokens"][0]["top"]), 2)
        self.no("no place for --details", "in.txt", "out.csv", "--details")

    def test_a_text_file_has_a_text_a_line(self):
        self.write("in.txt", "\ufeff%s\r\n\r\n带,逗号" % cli.TEXT)
        self.rewrite("in.txt", "out.csv", "--seed", "1", status=1)
        rows = self.rows("out.csv")
        self.assertEqual(rows[0], ["\ufefftext", *OURS])
        self.assertEqual([r[0] for r in rows[1:]], [cli.TEXT, "", "带,逗号"])
        self.assertRegex(rows[2][4], "empty")
        self.rewrite("in.txt", "out.jsonl", "--seed", "1", status=1)
        self.assertEqual([r["text"] for r in self.json_lines("out.jsonl")], [cli.TEXT, "", "带,逗号"])

    def test_a_table_without_rows_gives_one(self):
        self.write("in.csv", "text\n")
        self.rewrite("in.csv", "out.csv")
        self.assertEqual(self.read("out.csv"), b"text,rewrite_1,rewrite_2,rewrite_seed,rewrite_error\n")
        self.write("in.txt", "")
        self.rewrite("in.txt", "out.jsonl")
        self.assertEqual(self.read("out.jsonl"), b"")

    def test_input_may_be_a_pipe(self):
        data = "".join(t + "\n" for t in cli.TEXTS)
        fifo = self.path("in.txt")
        os.mkfifo(fifo)
        p = subprocess.Popen([cli.PROGRAM, *cli.one_thread(self.args("in.txt", "out.jsonl", "--seed", "2"))], env=self.env,
                             stderr=subprocess.PIPE)
        with open(fifo, "wb", buffering=0) as f:
            for b in data.encode("utf-8"):
                f.write(bytes([b]))
        _, err = p.communicate(timeout=cli.PATIENCE)
        self.assertEqual(p.returncode, 0, err)
        self.assertEqual([r["text"] for r in self.json_lines("out.jsonl")], cli.TEXTS)


class BadRows(Files):
    def test_bad_rows_of_a_table_have_an_error_in_their_place(self):
        good = "7,%s,1\n" % cli.TEXT
        data = b"".join([b"id,text,stars\n", good.encode(), b"only one\n", b"1,2,3,4,5\n", b"8,\xff\xfe,2\n", b"9,,\n", b"9,a\0b,\n",
                         ("10,%s,\n" % ("abc def. " * 4000)).encode(), good.encode()])
        self.write("in.csv", data)
        said = self.rewrite("in.csv", "out.csv", status=1)
        self.one_line(said)
        self.assertIn("6 of 8 rows failed", said)
        self.assertIn("--retry-failed", said)
        lines = self.read("out.csv").split(b"\n")
        self.assertTrue(lines[2].startswith(b"only one,,,,,"), lines[2])
        self.assertTrue(lines[3].startswith(b"1,2,3,4,5,,,"), lines[3])
        self.assertTrue(lines[4].startswith(b"8,\xff\xfe,2,,,"), lines[4])
        errors = [line.decode("utf-8", "replace") for line in lines[1:-1]]
        for number, pattern in ((1, "the row has 1 field, the table 3 columns"), (2, "the row has 5 fields"), (3, "not valid UTF-8 at byte 0"),
                                (4, "text: empty"), (5, "NUL"), (6, "input_too_long: .* tokens")):
            self.assertRegex(errors[number], pattern)
        for number in (0, 7):
            self.assertRegex(errors[number], r",\d+,$")
        self.rewrite("in.csv", "out.jsonl", status=1)
        rows = self.json_lines("out.jsonl")
        self.assertEqual(["rewrite_error" in r for r in rows], [False] + [True] * 6 + [False])
        self.assertEqual(rows[1]["id"], "only one")
        self.assertEqual(rows[2]["fields_beyond_columns"], ["4", "5"])
        self.assertEqual(rows[3]["text"], "\ufffd\ufffd")

    def test_bad_json_lines_have_an_error_in_their_place(self):
        lines = [json.dumps({"text": cli.TEXT}), "{", "[]", "3", '{"text": 1}', '{"x": 1, "y": 2}', '{"text": "a", "text": "b"}',
                 '{"text": "a", "rewrites": []}', '{"text": ""}', "\"%s\"" % ("x" * (1 << 20)), "{}", json.dumps(cli.TEXT)]
        self.write("in.jsonl", "\n".join(lines).encode("utf-8") + b"\n{\"text\":\"\xff\"}\n")
        said = self.rewrite("in.jsonl", "out.jsonl", status=1)
        self.assertIn("11 of 13 rows failed", said)
        rows = self.json_lines("out.jsonl")
        self.assertEqual(len(rows), 13)
        messages = [r.get("rewrite_error", {}).get("message", "") for r in rows]
        for number, pattern in ((2, "a JSON object or a string"), (4, "text"), (5, 'no field "text"; the object has: x, y'), (6, "duplicate"),
                                (7, 'already has a field "rewrites"'), (8, "empty"), (9, "longer than 1048576"), (10, "no field"), (12, "decode byte 0xff")):
            self.assertRegex(messages[number], pattern)
        self.assertEqual(rows[1]["index"], 1)       # a line that cannot be kept has its number
        self.assertEqual(rows[5]["y"], 2)
        self.assertEqual(rows[4]["rewrites"], [])
        # The same goes on and finds nothing to do.
        before = self.read("out.jsonl")
        self.rewrite("in.jsonl", "out.jsonl", "--resume", status=1)
        self.assertEqual(self.read("out.jsonl"), before)

    def test_an_open_quote_ends_the_run_and_says_where(self):
        good = "1,%s\r\n" % cli.TEXT
        for name, bad in (("end", '2,"open\r\n3,x\r\n'), ("long", '2,"open' + "x" * (3 << 20))):
            with self.subTest(name):
                self.write("in.csv", "id,text\r\n" + good + bad)
                said = self.no("in.csv: line 3: .*quote", "in.csv", "out.csv", "--seed", "1", "--force")
                self.assertIn("1 rows are in", said)
                self.assertEqual(len(self.rows("out.csv")), 2)
        self.write("in.csv", "id,text\r\n" + good + '2,"closed"\r\n')
        self.rewrite("in.csv", "out.csv", "--resume")
        self.assertEqual(len(self.rows("out.csv")), 3)


class Refusals(Files):
    def setUp(self):
        super().setUp()
        self.write("in.csv", table(numbered(cli.TEXTS)))

    def test_command_lines(self):
        for pattern, *args in (
            ("--input needs --output", "--input", "a.csv"),
            ("go with --input", "--output", "a.csv", "text"),
            ("go with --input", "--resume", "text"),
            ("go with --input", "--column", "a", "-"),
            ("either --input or a text", "--input", "a.csv", "--output", "b.csv", "text"),
            ("do not go with --input", "--input", "a.csv", "--output", "b.csv", "--jsonl"),
            ("do not go with --input", "--input", "a.csv", "--output", "b.csv", "--json"),
            ("--resume goes on", "--input", "a.csv", "--output", "b.csv", "--resume", "--force"),
            ("--retry-failed goes with --resume", "--input", "a.csv", "--output", "b.csv", "--retry-failed"),
        ):
            with self.subTest(args):
                self.refused(2, pattern, "rewrite", *args)

    def test_files_that_cannot_be_used(self):
        os.mkdir(self.path("folder.csv"))
        self.no(r"nosuch\.csv: No such file", "nosuch.csv", "out.csv")
        self.no(r"folder\.csv: a folder", "folder.csv", "out.csv")
        self.no(r"folder\.csv: .*Is a directory", "in.csv", "folder.csv")
        self.no(r"nosuch/out\.csv: .*No such file", "in.csv", "nosuch/out.csv")
        self.no(r"in\.csv: is the input", "in.csv", "in.csv", "--force")
        self.write("in.xlsx", "x")
        self.no(r"in\.xlsx: the name says no format; --input takes \.csv", "in.xlsx", "out.csv")
        self.no(r"out\.txt: the name says no format; --output takes \.csv", "in.csv", "out.txt")
        self.write("in.jsonl", '"a"\n')
        self.no(r"name the output \.jsonl", "in.jsonl", "out.csv")
        self.assertEqual(self.read("in.csv"), table(numbered(cli.TEXTS)).encode("utf-8"))

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_an_output_that_may_not_be_written(self):
        self.write("out.csv", "")
        os.chmod(self.path("out.csv"), 0o444)
        self.no(r"out\.csv: .*Permission denied", "in.csv", "out.csv")

    def test_columns(self):
        self.no(r'no column "review"; --column takes one of: id, text, stars', "in.csv", "out.csv", "--column", "review")
        self.write("twice.csv", "text,text\na,b\n")
        self.no('two columns are called "text"', "twice.csv", "out.csv")
        self.write("ours.csv", "text,rewrite_1\na,b\n")
        self.no('has a column "rewrite_1" already', "ours.csv", "out.csv")
        self.write("same.csv", "text,x,x\na,b,c\n")
        self.no('two columns are called "x", which JSON cannot have', "same.csv", "out.jsonl")
        for data in (b"", b"\n\n", b"\xef\xbb\xbf"):
            self.write("empty.csv", data)
            self.no("empty; a table begins with a line of column names", "empty.csv", "out.csv")

    def test_other_encodings_are_named_with_a_way_out(self):
        for codec, name in (("gb18030", "GBK"), ("utf-16", "UTF-16")):
            self.write("other.csv", table(numbered(cli.TEXTS)).encode(codec))
            said = self.no(r"not UTF-8, most likely %s; convert it: iconv -f \S+ -t UTF-8 " % name, "other.csv", "out.csv")
            command = re.search(r"convert it: (.*)$", said).group(1)
            subprocess.run(["sh", "-c", command], cwd=self.folder, check=True)
            self.assertEqual(self.read("utf8-other.csv").decode("utf-8").lstrip("\ufeff"), table(numbered(cli.TEXTS)))

    def test_an_output_that_exists_needs_a_word(self):
        self.rewrite("in.csv", "out.csv", "--seed", "1")
        before = self.read("out.csv")
        self.no(r"out\.csv: exists already; --resume goes on with it, --force begins anew", "in.csv", "out.csv")
        self.assertEqual(self.read("out.csv"), before)
        self.rewrite("in.csv", "out.csv", "--seed", "2", "--force")
        self.assertNotEqual(self.read("out.csv"), before)
        self.write("out2.csv", "")      # nothing to lose
        self.rewrite("in.csv", "out2.csv", "--seed", "1")
        self.assertEqual(self.read("out2.csv"), before)

    def test_one_run_writes_a_file_at_a_time(self):
        self.write("out.csv", "")
        with open(self.path("out.csv"), "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            self.no("another run is writing it", "in.csv", "out.csv")
            self.no("another run is writing it", "in.csv", "out.csv", "--resume")

    def test_a_model_that_is_missing_leaves_what_is_there(self):
        self.rewrite("in.csv", "out.csv", "--seed", "1")
        before = self.read("out.csv")
        self.refused(1, "nosuch", "rewrite", "-m", self.path("nosuch.gguf"), "-n", "2", "--input", self.path("in.csv"),
                     "--output", self.path("out.csv"), "--force")
        self.assertEqual(self.read("out.csv"), before)


class Resume(Files):
    texts = cli.TEXTS * 4

    def setUp(self):
        super().setUp()
        rows = numbered(self.texts)
        rows.insert(3, ["ragged"])
        rows[9][1] = "一行\n又\"一\"行"
        self.write("in.csv", table(rows))
        self.write("in.jsonl", "".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(self.texts)))

    def whole(self, source, output, seed="7"):
        self.rewrite(source, output, "--seed", seed, status=1 if source == "in.csv" else 0)
        return self.read(output)

    def test_cut_at_any_place_it_goes_on_to_the_same_file(self):
        for source, output in (("in.csv", "out.csv"), ("in.jsonl", "out.jsonl"), ("in.csv", "out.tsv")):
            data = self.whole(source, output)
            names = len(data.split(b"\n")[0])
            ends = [0, 20, names, names + 1, len(data) - 1, len(data), *random.Random(output).sample(range(len(data)), 3)]
            for end in ends:
                with self.subTest(output=output, end=end):
                    self.write(output, data[:end])
                    said = self.rewrite(source, output, "--resume", *(["--seed", "7"] if end < len(data) // 2 else []), status=1 if source == "in.csv" else 0)
                    self.assertEqual(self.read(output), data)
                    if end:
                        self.assertRegex(said, r"\d+ rows are there")

    def test_killed_five_times_it_is_as_if_never_stopped(self):
        texts = self.texts * 5
        self.write("in.csv", table(numbered(texts)))
        self.rewrite("in.csv", "want.csv", "--seed", "9")
        chance = random.Random(4)
        kills = 0
        while kills < 5:
            p = subprocess.Popen([cli.PROGRAM, *cli.one_thread(self.args("in.csv", "out.csv", "--resume", *(["--seed", "9"] if kills == 0 else [])))],
                                 env=self.env, stderr=subprocess.PIPE)
            before = os.path.getsize(self.path("out.csv")) if kills else 0
            # Once rows are coming, at any moment.
            cli.wait_until(lambda: p.poll() is not None or (os.path.exists(self.path("out.csv")) and
                           os.path.getsize(self.path("out.csv")) > before + 100), "rows")
            time.sleep(chance.random() * 0.2)
            p.kill()
            p.wait()
            p.stderr.close()
            kills += 1
        self.rewrite("in.csv", "out.csv", "--resume")
        self.assertEqual(self.read("out.csv"), self.read("want.csv"))

    def test_a_power_cut_may_leave_zeros(self):
        data = self.whole("in.csv", "out.csv")
        self.write("out.csv", data[:len(data) // 2] + b"\0" * 3000)
        said = self.rewrite("in.csv", "out.csv", "--resume", status=1)
        self.assertIn("one that was cut off, which is done again", said)
        self.assertEqual(self.read("out.csv"), data)

    def test_without_a_seed_a_run_draws_one_and_keeps_it(self):
        self.rewrite("in.jsonl", "a.jsonl")
        self.rewrite("in.jsonl", "b.jsonl")
        a, b = self.read("a.jsonl"), self.read("b.jsonl")
        self.assertNotEqual(a, b)
        self.write("a.jsonl", a[:a.index(b"\n") + 30])
        self.rewrite("in.jsonl", "a.jsonl", "--resume")
        self.assertEqual(self.read("a.jsonl"), a)
        seed = json.loads(a.split(b"\n")[0])["rewrite_seed"]
        self.no("was begun with --seed %d, not 12345" % seed, "in.jsonl", "a.jsonl", "--resume", "--seed", "12345")

    def test_an_output_of_something_else_is_refused_and_kept(self):
        data = self.whole("in.csv", "out.csv")
        lines = data.split(b"\r\n")
        changed = self.read("in.csv").replace(cli.TEXTS[1].encode(), "别的句子。".encode(), 1)
        cases = [
            ("row 2 is not what row 2 of .*in.csv gives", changed, data),
            ("more rows than", b"\r\n".join(self.read("in.csv").split(b"\r\n")[:8]) + b"\r\n", data),
            ("column names are not those", self.read("in.csv").replace(b"stars", b"sterne", 1), data),
            ("row 3 is not", self.read("in.csv"), b"\r\n".join(lines[:3] + [lines[3].replace(b",", b";", 1)] + lines[4:])),
            ("row 2 is not", self.read("in.csv"), b"\r\n".join(lines[:2] + lines[3:])),
            ("column names are not", self.read("in.csv"), b"a note of mine, without any newline"),
            ("column names are not", self.read("in.csv"), b"\x89PNG\r\n\x1a\n"),
            ("row 1 is not", self.read("in.csv"), lines[0] + b"\r\nnot ours"),
        ]
        for pattern, source, output in cases:
            with self.subTest(pattern):
                self.write("in.csv", source)
                self.write("out.csv", output)
                self.no(pattern, "in.csv", "out.csv", "--resume")
                self.assertEqual(self.read("out.csv"), output)
        self.write("out.jsonl", "my only copy of something")
        self.no("row 1 is not", "in.jsonl", "out.jsonl", "--resume")
        self.assertEqual(self.read("out.jsonl"), b"my only copy of something")

    def test_another_number_of_rewrites_is_refused(self):
        self.whole("in.csv", "out.csv")
        self.whole("in.jsonl", "out.jsonl")
        self.no("rewrite_1 to rewrite_3", "in.csv", "out.csv", "--resume", "-n", "3")
        self.no("row 1 is not what row 1 of .* gives with -n 3", "in.jsonl", "out.jsonl", "--resume", "-n", "3")

    def test_failed_rows_are_tried_again_only_when_asked(self):
        for source, output, empty in (("in.csv", "out.csv", b",,,"), ("in.jsonl", "out.jsonl", b'"rewrites":[]')):
            with self.subTest(source):
                want = self.whole(source, output, "3")
                os.remove(self.path(output))
                # No text is done in a thousandth of a second.
                said = self.rewrite(source, output, "--seed", "3", "--timeout", "0.001", "--max-tokens", "200", status=1)
                self.assertRegex(said, r"(2\d) of \1 rows failed")
                failed = self.read(output)
                self.assertIn(empty, failed)
                self.write(output, failed[:2 * len(failed) // 3])
                self.rewrite(source, output, "--resume", status=1)
                kept = self.read(output)
                self.assertIn(b"deadline", kept)
                self.assertNotEqual(kept, want)
                said = self.rewrite(source, output, "--resume", "--retry-failed", status=1 if source == "in.csv" else 0)
                self.assertEqual(self.read(output), want)
                self.assertEqual([n for n in os.listdir(self.folder) if n.endswith(".tmp")], [])

    def test_the_status_counts_failures_of_earlier_runs(self):
        data = self.whole("in.csv", "out.csv")
        said = self.rewrite("in.csv", "out.csv", "--resume", status=1)
        self.assertIn("1 of 21 rows failed", said)
        self.assertEqual(self.read("out.csv"), data)


class Ends(Files):
    """Interrupts, full disks and limits."""

    options = ["-n", "2", "--max-tokens", "40", "--allow-same", "--temperature", "2", "--top-p", "1"]

    def setUp(self):
        super().setUp()
        self.write("in.csv", table(numbered(cli.TEXTS * 60)))

    def start(self, *more):
        return subprocess.Popen([cli.PROGRAM, *cli.one_thread(self.args("in.csv", "out.csv", "--resume", *more))], env=self.env,
                                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def some_rows(self, p, more_than=300):
        cli.wait_until(lambda: p.poll() is not None or (os.path.exists(self.path("out.csv")) and
                       os.path.getsize(self.path("out.csv")) > more_than), "rows")

    def test_ctrl_c_leaves_whole_rows_and_says_how_to_go_on(self):
        p = self.start("--seed", "5")
        self.some_rows(p)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=cli.PATIENCE)
        said = err.decode("utf-8")
        self.assertEqual(p.returncode, 130, said)
        self.one_line(said)
        found = re.search(r"interrupted; (\d+) rows are in .*--resume goes on", said)
        self.assertTrue(found, said)
        rows = self.rows("out.csv")
        self.assertEqual(len(rows) - 1, int(found.group(1)))
        self.assertTrue(self.read("out.csv").endswith(b"\r\n"))
        self.assertLess(len(rows), 301)

    def test_rows_reach_the_file_while_it_runs(self):
        p = self.start("--seed", "5")
        self.some_rows(p)
        sizes = set()

        def grown():
            sizes.add(os.path.getsize(self.path("out.csv")))
            return len(sizes) > 2 or p.poll() is not None
        cli.wait_until(grown, "more rows")
        p.kill()
        p.communicate()
        self.assertGreater(len(sizes), 2)

    def test_a_full_disk_is_said_with_how_to_go_on(self):
        os.symlink("/dev/full", self.path("full.csv"))
        said = self.rewrite("in.csv", "full.csv", status=1)
        self.one_line(said)
        self.assertIn("full.csv: No space left on device; 0 rows are in", said)

    def test_a_file_that_may_not_grow_keeps_whole_rows(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
        said = self.rewrite("in.csv", "out.csv", "--seed", "5", status=1, preexec_fn=limit)
        self.assertRegex(said, r"out\.csv: File too large; \d+ rows are in .*--resume goes on")
        data = self.read("out.csv")
        self.assertTrue(data.endswith(b"\r\n") and len(data) <= 3000, data[-100:])
        rows = int(re.search(r"(\d+) rows are in", said).group(1))
        self.assertEqual(len(self.rows("out.csv")) - 1, rows)

    def test_progress_is_for_a_terminal(self):
        master, slave = self.terminal()
        p = subprocess.Popen([cli.PROGRAM, *cli.one_thread(self.args("in.csv", "out.csv"))], env=self.env, stdin=subprocess.DEVNULL, stderr=slave)
        os.close(slave)
        shown = b""
        while not re.search(rb"\d+ of about \d+ rows.*rows/s.*left", shown):
            shown += os.read(master, 4096)
            self.assertLess(len(shown), 1 << 20)
        p.kill()
        p.wait()
        os.close(master)

    @unittest.skipIf(os.environ.get("INKSTONE_SANITIZE"), "sanitizers keep freed memory")
    def test_memory_does_not_grow_with_the_file(self):
        def peak(n):
            self.write("in.csv", "id,text\n" + ("1,%s\n" % ("好" * 100000)) * n)      # a single unknown token in this model's vocabulary
            script = ("import resource, subprocess, sys\n"
                      "subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL)\n"
                      "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n")
            done = subprocess.run(["/usr/bin/python3", "-c", script, cli.PROGRAM, *cli.one_thread(self.args("in.csv", "out.csv", "--force"))],
                                  env=self.env, stdout=subprocess.PIPE, check=True, timeout=cli.PATIENCE)
            return int(done.stdout)
        small, large = peak(10), peak(360)      # 3 MB and 108 MB
        self.assertLess(large, small + 32 * 1024)


if __name__ == "__main__":
    cli.main()

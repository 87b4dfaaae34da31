"""--trace FILE: the first request as a timeline that browsers' trace viewers read."""

import json

import cli


class Trace(cli.Case):
    def trace(self, *args, **keywords):
        out = self.succeed("rewrite", "-m", cli.model(), "-n", "2", "--max-tokens", "6", "--allow-same", "--trace", self.path("trace.json"), *args, **keywords)
        return out, self.spans("trace.json")

    def spans(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]

    def test_stages_steps_and_operators(self):
        out, spans = self.trace("--json", cli.TEXT)
        answer = json.loads(out)
        request = [e for e in spans if e["tid"] == 0]
        engine = [e for e in spans if e["tid"] == 1]
        operators = [e for e in spans if e["tid"] == 2]

        whole = next(e for e in request if e["name"] == answer["id"])
        stages = {e["name"]: e["dur"] / 1000 for e in request if e is not whole}
        self.assertEqual(list(stages), ["tokenize", "queue", "encode", "first token", "decode"])
        for stage in ("encode", "decode"):
            self.assertAlmostEqual(stages[stage], answer["timings"][stage + "_ms"], places=2)
        self.assertLessEqual(sum(stages.values()), whole["dur"] / 1000 * 1.001)

        # Every operator lies in a step, and all decoder steps consist of the same ones, the output head last.
        steps = [e for e in engine if e["name"] in ("encode", "decode")]
        inside = {id(s): [] for s in steps}
        for op in operators:
            homes = [s for s in steps if s["ts"] <= op["ts"] + 1 and op["ts"] + op["dur"] <= s["ts"] + s["dur"] + 1]
            self.assertEqual(len(homes), 1, op)
            inside[id(homes[0])].append(op["name"])
        decodes = [inside[id(s)] for s in steps if s["name"] == "decode"]
        self.assertGreaterEqual(len(decodes), 2)
        for names in decodes:
            self.assertEqual(names, decodes[0])
            self.assertIn("attend", names)
        self.assertRegex(decodes[0][-1], r"output|token_embd")
        self.assertEqual(sum(e["name"] == "sample" for e in engine), len(decodes))

    def test_only_the_first_of_many(self):
        _, spans = self.trace("-", input="one\ntwo\nthree\n")
        self.assertEqual(sum(e["name"].startswith("rw-") for e in spans), 1)

    def test_a_server_traces_its_first_request(self):
        with cli.Server(self, "-m", cli.model(), "--trace", self.path("served.json")) as server:
            for text in ("one", "two"):
                status, answer = server.post("/v1/rewrite", {"text": text, "max_tokens": 4, "allow_same": True})
                self.assertEqual(status, 200, answer)
                if text == "one":
                    first = answer["id"]
            names = [e["name"] for e in self.spans("served.json") if e["tid"] == 0]  # complete while the server goes on
        self.assertEqual([n for n in names if n.startswith("rw-")], [first])

    def test_a_file_that_cannot_be_written(self):
        self.refused(1, "/nowhere/trace.json", "rewrite", "-m", cli.model(), "--trace", "/nowhere/trace.json", cli.TEXT)


if __name__ == "__main__":
    cli.main()

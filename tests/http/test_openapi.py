#!/usr/bin/env python3
"""GET /openapi.json: what it says is what the server does. schemathesis (from .deps/python) tries it out."""

import os
import re
import subprocess
import sys
import unittest

import inkhttp
from inkhttp import TEXT

DEMO = os.path.join(inkhttp.ROOT, "models", "inkstone-demo.gguf")
# Fields that make a body right and its work short, where it has them.
RIGHT = {"text": TEXT, "texts": [TEXT], "source": "abc", "target": "abc", "n": 1, "max_tokens": 4, "max_length": 4}


def plain(schema):
    """A field's schema without the null that stands for the default."""
    choices = [s for s in schema.get("anyOf", [schema]) if s != {"type": "null"}]
    return choices[0] if len(choices) == 1 else schema


class Document(inkhttp.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.document = cls.server.get("/openapi.json").json
        cls.schemas = cls.document["components"]["schemas"]

    def bodies(self):
        """(path, name of the body's schema)"""
        for path, methods in self.document["paths"].items():
            for operation in methods.values():
                if "requestBody" in operation:
                    yield path, operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].split("/")[-1]

    def right(self, name):
        return {k: v for k, v in RIGHT.items() if k in self.schemas[name]["properties"]}

    def test_every_reference_is_there(self):
        def walk(value):
            if isinstance(value, dict):
                if "$ref" in value:
                    self.assertIn(value["$ref"].split("/")[-1], self.schemas)
                for v in value.values():
                    walk(v)
            elif isinstance(value, list):
                for v in value:
                    walk(v)
        walk(self.document)
        self.assertTrue(self.document["openapi"].startswith("3.1"))

    def test_defaults_are_the_contracts(self):
        fields = self.schemas["RewriteRequest"]["properties"]
        wanted = {"n": 3, "temperature": 0.85, "top_p": 0.9, "top_k": 0, "min_p": 0, "repetition_penalty": 1, "max_tokens": 64, "stream": False,
                  "details": False, "cache": "auto", "timeout_ms": 30000, "on_long_input": "reject", "linger_ms": 0}
        for name, value in wanted.items():
            self.assertEqual(fields[name]["default"], value, name)
        for name in ("text", "model", "seed", "stop"):
            self.assertNotIn("default", fields[name])

    def test_ranges_are_kept_at_both_ends(self):
        tried = 0
        for path, name in self.bodies():
            for field, schema in self.schemas[name]["properties"].items():
                schema = plain(schema)
                wrong, right = [{}], []
                if schema.get("type") in ("integer", "number"):
                    if "minimum" in schema:
                        wrong.append(schema["minimum"] - 1)
                        right.append(schema["minimum"])
                    if "exclusiveMinimum" in schema:
                        wrong.append(schema["exclusiveMinimum"])
                    if "maximum" in schema:
                        wrong.append(schema["maximum"] + 1)
                        right.append(schema["maximum"])
                elif "enum" in schema:
                    wrong += ["", schema["enum"][0].upper()]
                    right += schema["enum"]
                elif schema.get("type") == "boolean":
                    wrong += [0, "true"]
                    right += [True, False]
                elif schema.get("type") == "array":
                    wrong += [[]] if schema.get("minItems") else []
                for value in wrong:
                    body = self.right(name)
                    if field.endswith("ids") and field != "ids":
                        body.pop(field[:-len("_ids")], None)
                    if field in ("source_ids", "ids"):
                        body.pop("text", None)
                    body[field] = value
                    with self.subTest(path=path, field=field, value=value):
                        self.check_error(self.server.post(path, body), 400, "invalid_value", field)
                        tried += 1
                for value in right:
                    body = {**self.right(name), field: value}
                    with self.subTest(path=path, field=field, value=value):
                        answer = self.server.post(path, body)
                        if answer.status == 400:
                            self.assertNotEqual(answer.json["error"]["param"], field, answer.text)
                        tried += 1
        self.assertGreater(tried, 60)

    def test_exactly_one_of_text_and_ids(self):
        for path, name in self.bodies():
            for rule in self.schemas[name].get("allOf", []):
                names = [r["required"][0] for r in rule["oneOf"]]
                body = {k: v for k, v in self.right(name).items() if k not in names}
                self.check_error(self.server.post(path, body), 400, "invalid_value", names[0])
                self.check_error(self.server.post(path, {**body, names[0]: "abc", names[1]: [5, 6]}), 400, "invalid_value", names[0])

    def test_every_route_is_in_it(self):
        """Asked with a method that no route has, a path says which ones it answers."""
        for path, methods in self.document["paths"].items():
            answer = self.server.request("PATCH", path.replace("{id}", "x"))
            self.assertEqual(answer.status, 405, path)
            allowed = set(answer.headers["Allow"].split(", ")) - {"HEAD"}
            self.assertEqual(allowed, {m.upper() for m in methods}, path)


class Schemathesis(unittest.TestCase):
    def test_answers_are_as_described(self):
        env = dict(inkhttp.environment(), PYTHONPATH=os.path.join(inkhttp.ROOT, ".deps", "python"), PYTHONDONTWRITEBYTECODE="1")
        config = os.path.join(inkhttp.folder(), "schemathesis.toml")
        with open(config, "w", encoding="utf-8") as f:      # a deadline of 1 ms may well be missed
            f.write('[checks.not_a_server_error]\nexpected-statuses = ["2xx", "3xx", "4xx", 504]\n')
        with inkhttp.Server(model_path=DEMO) as server:
            done = subprocess.run(
                [sys.executable, "-m", "schemathesis.cli", "--config-file", config, "run", server.url + "/openapi.json", "--no-color", "--max-examples", "25",
                 "--max-time", str(30 * inkhttp.SLOW), "--phases", "fuzzing", "--seed", "1", "--no-shrink", "--continue-on-failure",
                 "--suppress-health-check", "all", "--request-timeout", str(inkhttp.PATIENCE), "--generation-database", "none",
                 "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
                             "response_schema_conformance"],
                cwd=inkhttp.folder(), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200 * inkhttp.SLOW)
            output = done.stdout.decode("utf-8", "replace")
            self.assertEqual(done.returncode, 0, output[-8000:])
            found = re.search(r"(\d+) generated", output)
            self.assertTrue(found and int(found.group(1)) >= 20, output[-2000:])
            print("schemathesis: %s requests tried" % found.group(1))
            self.assertEqual(server.get("/health").status, 200)


if __name__ == "__main__":
    inkhttp.main()

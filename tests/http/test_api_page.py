#!/usr/bin/env python3
"""docs/API.md against the server: routes, fields, types, defaults, ranges, answers, events and error codes, both ways; its examples run."""

import json
import os
import re
import subprocess

import inkhttp

PAGE = os.path.join(inkhttp.ROOT, "docs", "API.md")
DEMO = os.path.join(inkhttp.ROOT, "models", "inkstone-demo.gguf")


def read(*path):
    with open(os.path.join(inkhttp.ROOT, *path), encoding="utf-8") as f:
        return f.read()


def rows(text, first):
    """The cells of the table whose header begins with `first`."""
    found = re.search(r"^\| %s \|.*\n\|[-|]+\|\n((?:\|.*\n)+)" % re.escape(first), text, re.M)
    if not found:
        return []
    return [[c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in found.group(1).splitlines()]


def sections(text, level):
    """{heading: what stands below it}"""
    parts = re.split(r"^%s (.+)\n" % ("#" * level), text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def type_words(schema):
    if "anyOf" in schema and any(s == {"type": "null"} for s in schema["anyOf"]):
        schema = [s for s in schema["anyOf"] if s != {"type": "null"}][0]
    if "anyOf" in schema:
        return " or ".join(type_words(s) for s in schema["anyOf"])
    if "enum" in schema:
        return "string"
    if schema["type"] == "array":
        return "array of %ss" % schema["items"]["type"] if "type" in schema["items"] else "array"
    return schema["type"]


def range_words(schema):
    """What the page must say of a range; None: anything."""
    if "anyOf" in schema and any(s == {"type": "null"} for s in schema["anyOf"]):
        schema = [s for s in schema["anyOf"] if s != {"type": "null"}][0]
    if "enum" in schema:
        return ", ".join("`%s`" % w for w in schema["enum"])
    if "exclusiveMinimum" in schema:
        return "above %g, to %g" % (schema["exclusiveMinimum"], schema["maximum"])
    if "maximum" in schema and "minimum" in schema:
        return "%s to %s" % (("%d" if schema["type"] == "integer" else "%g") % schema["minimum"],
                             ("%d" if schema["type"] == "integer" else "%g") % schema["maximum"])
    return None


class Page(inkhttp.Case):
    @classmethod
    def setUpClass(cls):
        cls.server = inkhttp.Server(model_path=DEMO)
        cls.document = cls.server.get("/openapi.json").json
        cls.schemas = cls.document["components"]["schemas"]
        cls.page = read("docs", "API.md")
        cls.routes = sections(cls.page.split("\n## Routes\n")[1].split("\n## ")[0], 3)

    def operations(self):
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                yield "%s %s" % (method.upper(), path), operation

    def test_the_same_routes(self):
        self.assertEqual(set(self.routes), {name for name, _ in self.operations()})

    def test_the_same_fields(self):
        checked = 0
        for name, operation in self.operations():
            table = rows(self.routes[name], "field")
            body = operation.get("requestBody")
            fields = {}
            if body:
                fields = self.schemas[body["content"]["application/json"]["schema"]["$ref"].split("/")[-1]]["properties"]
            if "options of" in self.routes[name]:     # the others stand under another route
                other = re.search(r"options of `(.*?)`", self.routes[name]).group(1)
                have = {row[0] for row in table}
                table += [row for row in rows(self.routes[other], "field") if row[0] not in have and row[0] not in ("`text`", "`source_ids`")]
            with self.subTest(route=name):
                self.assertEqual({row[0] for row in table}, {"`%s`" % f for f in fields})
            for row in table:
                schema = fields[row[0].strip("`")]
                with self.subTest(route=name, field=row[0]):
                    checked += 1
                    self.assertEqual(row[1], type_words(schema))
                    default = schema.get("default")
                    if default is None:
                        self.assertEqual(row[2], "–")
                    elif isinstance(default, (bool, str)):
                        self.assertEqual(row[2], str(default).lower() if isinstance(default, bool) else default)
                    else:
                        self.assertEqual(float(row[2]), default)
                    if range_words(schema):
                        self.assertEqual(row[3], range_words(schema))
        self.assertGreater(checked, 30)

    def test_the_same_answers(self):
        answers = self.page.split("\n## Answers\n")[1]
        told = {row[0]: dict(re.findall(r"`(\w+\??)` (\S+?)(?:,|$)", row[1])) for row in rows(answers, "shape")}
        bodies = {op["requestBody"]["content"]["application/json"]["schema"]["$ref"].split("/")[-1]
                  for _, op in self.operations() if "requestBody" in op}
        self.assertEqual(set(told), set(self.schemas) - bodies)
        for shape, fields in told.items():
            wanted = {}
            for name, schema in self.schemas[shape]["properties"].items():
                null = [s for s in schema.get("anyOf", []) if s != {"type": "null"}]
                one = null[0] if null else schema
                item = one.get("items", one)
                word = item["$ref"].split("/")[-1] if "$ref" in item else item.get("type", "any")
                wanted[name + ("" if name in self.schemas[shape]["required"] else "?")] = (
                    word + ("[]" if "items" in one else "") + ("|null" if null else ""))
            self.assertEqual(fields, wanted, shape)

    def test_the_same_events(self):
        told = {row[0].strip("`") for row in rows(self.page, "event")}
        self.assertEqual(told, {s[:-len("Event")].lower() for s in self.schemas if s.endswith("Event")})
        sent = set(re.findall(r'typed(?:_with)?\("(\w+)"', read("src", "server", "routes_native.c")))
        self.assertEqual(told, sent)

    def test_the_same_error_codes(self):
        told = {(row[0].strip("`"), row[1]) for row in rows(self.page, "code")}
        self.assertEqual(told, set(re.findall(r'\{ "(\w+)", (\d{3}), ', read("src", "server", "error_words.c"))))

    def test_the_examples_run(self):
        for name, text in self.routes.items():
            with self.subTest(route=name):
                command = re.search(r"^```\n(curl .*)\n```$", text, re.M).group(1)
                method, path = name.split()
                self.assertIn("7860" + path.split("{")[0], command)
                done = subprocess.run(["bash", "-c", command.replace(":7860", ":%d" % self.server.port) + " -w '\\n%{http_code}'"],
                                      stdin=subprocess.DEVNULL, capture_output=True, timeout=inkhttp.PATIENCE)
                body, _, status = done.stdout.decode("utf-8").rpartition("\n")
                self.assertEqual(status, "404" if "{id}" in path else "200", body)
                if "{id}" in path:
                    self.assertEqual(json.loads(body)["error"]["code"], "not_found")


if __name__ == "__main__":
    inkhttp.main()

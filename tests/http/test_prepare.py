"""A text that was encoded ahead, or asked for before, isn't encoded again; with the cache off it always is."""

import inkhttp


class Prepare(inkhttp.Case):
    def passes(self):
        return self.server.metric("inkstone_encoder_passes_total")

    def test_prepared_text_needs_no_encoder(self):
        text = "We meet tomorrow at ten in the small room."  # words of the vocabulary: others would all be the same unknown token
        before = self.passes()
        answer = self.server.post("/v1/rewrite/prepare", {"text": text})
        self.assertEqual(answer.status, 200, answer.text)
        answer = answer.json
        self.assertEqual(answer["state"], "ready")
        self.assertGreater(answer["usage"]["input_tokens"], 5)
        self.assertNotIn("rewrites", answer)
        self.assertEqual(self.passes(), before + 1)
        kept = self.server.rewrite(text, seed=1, max_tokens=8)
        self.assertEqual(kept["source_cache"], "hit")
        self.assertEqual(kept["timings"]["encode_ms"], 0)
        self.assertEqual(self.passes(), before + 1)

        fresh = self.server.rewrite(text, seed=1, max_tokens=8, cache="off")
        self.assertEqual(fresh["source_cache"], "off")
        self.assertEqual(self.passes(), before + 2)
        self.assertEqual(fresh["rewrites"], kept["rewrites"])

        again = self.server.rewrite(text, max_tokens=8, cache="refresh")
        self.assertEqual(again["source_cache"], "hit")
        self.assertEqual(self.passes(), before + 2)

    def test_the_same_errors_as_a_rewrite(self):
        for body, field in (({}, "text"), ({"text": "  "}, "text"), ({"text": 3}, "text"), ({"text": "好", "model": "none"}, "model"), ({"text": "good day " * 3000}, "text")):
            for route in ("/v1/rewrite/prepare", "/v1/rewrite"):
                answer = self.server.post(route, body)
                self.assertIn(answer.status, (400, 404), (route, body))
                self.assertEqual(answer.json["error"]["param"], field, (route, body))

    def test_a_client_that_leaves_ends_it(self):
        before = self.server.metric("inkstone_jobs_cancelled_total") + self.server.metric("inkstone_jobs_finished_total")
        for _ in range(20):
            sock = self.server.raw()
            sock.sendall(inkhttp.raw_post({"text": "I leave now. " * 20}, "/v1/rewrite/prepare"))
            sock.close()
        inkhttp.wait_until(lambda: self.server.metric("inkstone_jobs_running") == 0 and self.server.metric("inkstone_queue_length") == 0, "nothing runs")
        after = self.server.metric("inkstone_jobs_cancelled_total") + self.server.metric("inkstone_jobs_finished_total")
        self.assertLessEqual(after, before + 20)
        self.assertEqual(self.server.post("/v1/rewrite/prepare", {"text": "Still there?"}).status, 200)


if __name__ == "__main__":
    inkhttp.main()

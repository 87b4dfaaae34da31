#!/usr/bin/env python3
"""Times transformers with torch on the work of the rewrite benchmark; prints one JSON document.

    bench_transformers.py MODEL_DIR [--type float32|bfloat16] [--batch-size 10] [--threads 2] [--runs 10] [--batch-runs 1]

Runs in the reference environment (tools/reference-env.sh). The 50 texts go through generate() --batch-size at a time.
"""

import argparse
import os
import time
import warnings

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import peers  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    peers.add_arguments(parser)
    parser.add_argument("--type", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--batch-size", type=int, default=10)
    args = parser.parse_args()

    import sentencepiece
    import torch
    import transformers

    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(args.threads)
    start = time.perf_counter()
    model = transformers.MT5ForConditionalGeneration.from_pretrained(args.model, dtype=getattr(torch, args.type)).eval()
    load_ms = (time.perf_counter() - start) * 1e3
    sp = sentencepiece.SentencePieceProcessor(model_file=os.path.join(args.model, "spiece.model"))
    texts = torch.tensor(peers.sources(peers.N_TEXTS, sp.vocab_size()))

    def rewrite(rows):
        with torch.inference_mode():
            out = model.generate(input_ids=rows, attention_mask=torch.ones_like(rows), do_sample=True, top_k=args.top_k, top_p=peers.TOP_P,
                                 temperature=peers.TEMPERATURE, num_return_sequences=peers.N_CANDIDATES,
                                 min_new_tokens=peers.N_NEW, max_new_tokens=peers.N_NEW)
        assert out.shape == (len(rows) * peers.N_CANDIDATES, peers.N_NEW + 1), out.shape

    def all_texts():
        for at in range(0, len(texts), args.batch_size):
            rewrite(texts[at:at + args.batch_size])

    single = peers.measure(lambda: rewrite(texts[:1]), args.runs, 1)
    batch = peers.measure(all_texts, args.batch_runs, 0)
    peers.report("transformers", args, version=transformers.__version__, load_ms=round(load_ms, 1), batch_size=args.batch_size,
                 single_ms=single, batch_ms=batch)


if __name__ == "__main__":
    main()

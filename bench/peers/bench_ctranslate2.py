#!/usr/bin/env python3
"""Times CTranslate2 on the work of the rewrite benchmark; prints one JSON document.

    bench_ctranslate2.py MODEL_DIR [--work DIR] [--type int8] [--threads 2] [--runs 10] [--batch-runs 1]

Runs in the reference environment (tools/reference-env.sh). The conversion is kept in --work (default: MODEL_DIR/ctranslate2-TYPE)
and made in a process of its own, so that its memory does not count.
"""

import argparse
import os
import subprocess
import sys
import time

import peers


def convert(model, out, kind):
    """Only what lies in the folder is used: the configuration, the weights, and a tokenizer built from spiece.model."""
    code = ("import sys\n"
            "from ctranslate2.converters import TransformersConverter\n"
            "TransformersConverter(sys.argv[1], low_cpu_mem_usage=True).convert(sys.argv[2], quantization=sys.argv[3], force=True)\n")
    environment = dict(os.environ, HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")
    done = subprocess.run([sys.executable, "-c", code, model, out, kind], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit("bench_ctranslate2: the conversion of %s failed: %s" % (model, done.stdout.strip().splitlines()[-1]))


def main():
    parser = argparse.ArgumentParser()
    peers.add_arguments(parser)
    parser.add_argument("--work")
    parser.add_argument("--type", default="int8")
    args = parser.parse_args()

    folder = args.work or os.path.join(args.model, "ctranslate2-" + args.type)
    if not os.path.exists(os.path.join(folder, "model.bin")):
        convert(args.model, folder, args.type)

    import ctranslate2      # after the conversion: only now does its memory count
    import sentencepiece

    sp = sentencepiece.SentencePieceProcessor(model_file=os.path.join(args.model, "spiece.model"))
    texts = [[sp.id_to_piece(i) for i in ids] for ids in peers.sources(peers.N_TEXTS, sp.vocab_size())]
    start = time.perf_counter()
    translator = ctranslate2.Translator(folder, device="cpu", compute_type=args.type, inter_threads=1, intra_threads=args.threads)
    load_ms = (time.perf_counter() - start) * 1e3

    def rewrite(batch):
        results = translator.translate_batch(
            batch, beam_size=1, num_hypotheses=peers.N_CANDIDATES, sampling_topk=args.top_k, sampling_topp=peers.TOP_P,
            sampling_temperature=peers.TEMPERATURE, min_decoding_length=peers.N_NEW, max_decoding_length=peers.N_NEW)
        for result in results:
            assert [len(h) for h in result.hypotheses] == [peers.N_NEW] * peers.N_CANDIDATES, [len(h) for h in result.hypotheses]

    single = peers.measure(lambda: rewrite(texts[:1]), args.runs, 2)
    batch = peers.measure(lambda: rewrite(texts), args.batch_runs, 0)
    peers.report("ctranslate2", args, version=ctranslate2.__version__, load_ms=round(load_ms, 1), single_ms=single, batch_ms=batch)


if __name__ == "__main__":
    main()

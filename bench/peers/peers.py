"""What the peer benchmarks share: the work to do, and how it is measured and printed."""

import json
import os
import resource
import time

N_SOURCE = 40       # tokens in, </s> included
N_CANDIDATES = 3
N_NEW = 24          # tokens out, forced: no candidate may end earlier
N_TEXTS = 50
TEMPERATURE, TOP_P = 0.85, 0.9
TOP_K = 50          # before top-p, which alone makes both peers sort the whole vocabulary: this is their better time


def sources(n, n_pieces, length=N_SOURCE):
    """n sources of made-up ids, the same every time; the last id is </s> (1)."""
    out, state = [], 12345
    for _ in range(n):
        ids = []
        for _ in range(length - 1):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            ids.append(300 + (state >> 33) % (n_pieces - 300))
        out.append(ids + [1])
    return out


def measure(work, n_runs, n_warm):
    """Milliseconds of each run."""
    for _ in range(n_warm):
        work()
    out = []
    for _ in range(n_runs):
        start = time.perf_counter()
        work()
        out.append(round((time.perf_counter() - start) * 1e3, 2))
    return out


def peak_rss_mib():
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def add_arguments(parser):
    parser.add_argument("model", help="Hugging Face folder: make_checkpoint base SPIECE_MODEL DIR")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=10, help="runs of one request")
    parser.add_argument("--top-k", type=int, default=TOP_K, help="0: top-p alone, as Inkstone samples by default")
    parser.add_argument("--batch-runs", type=int, default=1, help="runs of 50 texts; 0 leaves them out")


def report(peer, args, **values):
    work = {"tokens_in": N_SOURCE, "candidates": N_CANDIDATES, "tokens_out": N_NEW, "texts": N_TEXTS,
            "temperature": TEMPERATURE, "top_p": TOP_P, "top_k": args.top_k}
    print(json.dumps({"peer": peer, "type": args.type, "threads": args.threads, "work": work, **values, "peak_rss_mib": peak_rss_mib(), "cpus": os.cpu_count()}))

#!/usr/bin/env python3
"""Trains the demo rewriting model and writes a Hugging Face folder.

  make_data.py -o pairs.tsv
  train.py pairs.tsv -o demo-hf [--steps 6000] [--minutes 55] [--batch 64] [--seed 1]

Two worker processes with one thread each share the batch. The learning rate falls with the steps done; when the wall
clock runs ahead of the steps it falls with the clock, so that training always ends in time and at a rate of zero.
"""

import argparse
import json
import os
import random
import sys
import time

WORKERS = 2
PROMPT = "改写：{text}"
CONFIG = dict(d_model=192, d_kv=32, num_heads=6, d_ff=512, num_layers=3, num_decoder_layers=3, relative_attention_num_buckets=32, relative_attention_max_distance=128,
              feed_forward_proj="gated-gelu", dropout_rate=0.0, initializer_factor=0.3, layer_norm_epsilon=1e-6, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)


def read_pairs(path):
    with open(path, encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f]


def save(folder, model, spiece):
    from safetensors.torch import save_file

    os.makedirs(folder, exist_ok=True)
    config = dict(model.config.to_dict(), architectures=["MT5ForConditionalGeneration"], tie_word_embeddings=False, torch_dtype="float32")
    for name in ("transformers_version", "dtype", "_name_or_path"):
        config.pop(name, None)
    tensors = {k: v.detach().clone().contiguous() for k, v in model.state_dict().items() if k not in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")}
    save_file(tensors, f"{folder}/model.safetensors.new", metadata={"format": "pt"})
    os.replace(f"{folder}/model.safetensors.new", f"{folder}/model.safetensors")
    documents = {
        "config.json": config,
        "generation_config.json": {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "max_new_tokens": 64},
        "tokenizer_config.json": {"tokenizer_class": "T5Tokenizer", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "extra_ids": 0, "model_max_length": 512},
        "inkstone.json": {"prompt": PROMPT, "name": "inkstone-demo", "license": "MIT", "demo": True},
    }
    for name, document in documents.items():
        with open(f"{folder}/{name}", "w", encoding="utf-8") as f:
            json.dump(document, f, ensure_ascii=False, indent=2)
            f.write("\n")
    with open(spiece, "rb") as source, open(f"{folder}/spiece.model", "wb") as f:
        f.write(source.read())


def realign_head(model, counts, usual=200):
    """Gives the head's rows of seldom seen characters their identity back.

    A linear map from embedding rows to head rows is fitted on the characters seen often; rows seen less than about
    `usual` times are moved to what the map says. counts: how often each piece occurs in the targets."""
    import torch

    embedding, head = model.shared.weight.double(), model.lm_head.weight.double()
    seen = torch.tensor(counts, dtype=torch.double)
    often = torch.where(seen > 1.25 * usual)[0]
    ones = torch.ones(len(embedding), 1, dtype=torch.double)
    inputs = torch.cat([embedding, ones], 1)
    x = inputs[often]
    weights = torch.linalg.solve(x.T @ x + 3 * torch.eye(x.shape[1], dtype=torch.double), x.T @ head[often])
    share = (seen / (seen + usual))[:, None]
    share[:260] = 1
    model.lm_head.weight.data.copy_(share * head + (1 - share) * (inputs @ weights))


def batches(lengths, batch, rng):
    """Endless batches of pair numbers; pairs of one batch are of like length."""
    while True:
        order = list(range(len(lengths)))
        rng.shuffle(order)
        pool = batch * 64
        for start in range(0, len(order) - pool + 1, pool):
            part = sorted(order[start:start + pool], key=lambda i: lengths[i])
            groups = [part[i:i + batch] for i in range(0, pool, batch)]
            rng.shuffle(groups)
            yield from groups


def worker(rank, args, spiece, source_ids, target_ids, started):
    import torch
    import torch.distributed as dist
    from transformers import MT5Config, MT5ForConditionalGeneration

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(args.port))
    dist.init_process_group("gloo", rank=rank, world_size=WORKERS)
    torch.manual_seed(args.seed)
    model = MT5ForConditionalGeneration(MT5Config(vocab_size=args.rows, **CONFIG))
    # Untied head: starts as a scaled copy of the embedding, so that rarely seen characters can be copied from early on.
    model.lm_head.weight = torch.nn.Parameter(model.shared.weight.detach().clone() * 0.3)
    if args.resume:
        from safetensors.torch import load_file
        model.load_state_dict(load_file(f"{args.resume}/model.safetensors"), strict=False)
        if args.realign:
            counts = [0] * args.rows
            for row in target_ids:
                for piece in row:
                    counts[piece] += 1
            with torch.no_grad():
                realign_head(model, counts)
    model.train()
    parameters = [p for p in {id(p): p for p in model.parameters()}.values()]
    # Adam turns the tiny gradients that push down every piece that isn't the target into full steps: over thousands of
    # steps the head's rows of seldom seen characters drift until they can't be told apart. A larger epsilon stops that.
    tables = [model.shared.weight, model.lm_head.weight]
    matrices = [p for p in parameters if p.ndim > 1 and not any(p is t for t in tables)]
    plain = [p for p in parameters if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}, {"params": tables, "weight_decay": 0.0, "eps": 1e-5}],
                                  lr=args.rate, betas=(0.9, 0.98), eps=1e-8, fused=True)
    if rank == 0:
        print(f"{sum(p.numel() for p in parameters) / 1e6:.2f} M parameters, {len(source_ids)} pairs", flush=True)
    held = 400
    rng = random.Random(args.seed)
    lengths = [len(s) + len(t) for s, t in zip(source_ids, target_ids)]

    def pad(rows_, fill):
        width = max(len(r) for r in rows_)
        return torch.tensor([r + [fill] * (width - len(r)) for r in rows_])

    def loss_sum(numbers):
        source = pad([source_ids[i] for i in numbers], 0)
        target = pad([target_ids[i] for i in numbers], -1)
        inputs = torch.cat([torch.zeros(len(numbers), 1, dtype=torch.long), target[:, :-1].clamp(min=0)], 1)
        mask = (source != 0).long()
        hidden = model.encoder(input_ids=source, attention_mask=mask).last_hidden_state
        out = model.decoder(input_ids=inputs, encoder_hidden_states=hidden, encoder_attention_mask=mask, use_cache=False).last_hidden_state
        used = target >= 0
        return torch.nn.functional.cross_entropy(model.lm_head(out[used]), target[used], reduction="sum"), int(used.sum())

    def validate():
        with torch.no_grad():
            total = [loss_sum(list(range(i, min(i + 50, held)))) for i in range(0, held, 50)]
        return sum(float(a) for a, _ in total) / sum(b for _, b in total)

    size = sum(p.numel() for p in parameters)
    flat = torch.zeros(size + 3)
    step, mean, shown = 0, None, time.time()
    for group in batches(lengths[held:], args.batch, rng):
        mine = [i + held for i in group[rank::WORKERS]]
        optimizer.zero_grad(set_to_none=False)
        loss, count = loss_sum(mine)
        loss.backward()
        at = 0
        for p in parameters:
            flat[at:at + p.numel()] = p.grad.flatten() if p.grad is not None else 0
            at += p.numel()
        flat[at:] = torch.tensor([float(loss.detach()), float(count), (time.time() - started) / WORKERS])
        dist.all_reduce(flat)
        total, tokens, elapsed = flat[at:].tolist()
        progress = max(step / args.steps, elapsed / (args.minutes * 60))
        if progress >= 1:
            break
        grads = flat[:at].div_(tokens)
        norm = float(grads.norm())
        if norm > 1:
            grads.div_(norm)
        at = 0
        for p in parameters:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            p.grad.copy_(grads[at:at + p.numel()].view_as(p))
            at += p.numel()
        rate = args.rate * min(1.0, (step + 1) / 150) * min(1.0, (1 - progress) * 1.15)
        for g in optimizer.param_groups:
            g["lr"] = rate
        optimizer.step()
        step += 1
        mean = total / tokens if mean is None else 0.98 * mean + 0.02 * total / tokens
        if rank == 0 and step % 50 == 0:
            print(f"step {step}  loss {mean:.4f}  rate {rate:.5f}  {elapsed:.0f} s  {(time.time() - shown) / 50:.2f} s/step", flush=True)
            shown = time.time()
        if rank == 0 and step % args.save_every == 0:
            print(f"step {step}  held-out loss {validate():.4f}", flush=True)
            save(args.output, model, spiece)
    if rank == 0:
        print(f"step {step}  held-out loss {validate():.4f}  {time.time() - started:.0f} s", flush=True)
        model.lm_head.weight.data.mul_(args.sharpen)
        save(args.output, model, spiece)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--minutes", type=float, default=55)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save-every", type=int, default=500)
    parser.add_argument("--port", type=int, default=29517)
    parser.add_argument("--resume", help="folder whose weights and vocabulary to start from")
    parser.add_argument("--sharpen", type=float, default=1.0, help="multiply the finished head: 1.5 makes temperature 0.85 act like 0.57")
    parser.add_argument("--realign", action="store_true", help="with --resume: repair the head's rows of seldom seen characters first")
    args = parser.parse_args()
    started = time.time()
    import multiprocessing

    import sentencepiece

    import vocabulary

    pairs = read_pairs(args.pairs)
    os.makedirs(args.output, exist_ok=True)
    prefix = f"{args.output}/spiece-work"
    if args.resume:
        spiece = f"{args.resume}/spiece.model"
    else:
        sample = pairs[:120000]
        vocabulary.train((text for pair in sample for text in (pair[0], PROMPT.replace("{text}", pair[1]))), prefix, args.output)
        spiece = prefix + ".model"
    sp = sentencepiece.SentencePieceProcessor(model_file=spiece)
    args.rows = (sp.get_piece_size() + 63) // 64 * 64
    print(f"vocabulary: {sp.get_piece_size()} pieces, {args.rows} rows, {time.time() - started:.0f} s", flush=True)
    before, after = PROMPT.split("{text}")
    source_ids = sp.encode([before + s + after for s, _ in pairs], add_eos=True)
    target_ids = sp.encode([t for _, t in pairs], add_eos=True)
    keep = [i for i in range(len(pairs)) if len(source_ids[i]) <= 72 and len(target_ids[i]) <= 72]
    source_ids, target_ids = [source_ids[i] for i in keep], [target_ids[i] for i in keep]
    print(f"mean length {sum(map(len, source_ids)) / len(keep):.1f} + {sum(map(len, target_ids)) / len(keep):.1f} pieces, {time.time() - started:.0f} s", flush=True)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=worker, args=(r, args, spiece, source_ids, target_ids, started)) for r in range(WORKERS)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    if any(w.exitcode for w in workers):
        sys.exit("a worker failed")
    for name in ("charsmap.tsv", "spiece-work.model", "spiece-work.vocab"):
        if os.path.exists(f"{args.output}/{name}"):
            os.remove(f"{args.output}/{name}")


if __name__ == "__main__":
    main()

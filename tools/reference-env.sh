#!/bin/sh
# Makes the Python environment of the reference: what golden values come from, and what benchmarks compare with.
# Only developers need it; neither the build nor `make test` does.
#
#   usage: tools/reference-env.sh [DIR]
#
# DIR defaults to $INKSTONE_REFERENCE_ENV, else ~/.cache/inkstone/reference. Needs Python 3.10 or newer with venv, and
# about 6 GB of disk. Prints the path of its python when it is done. A second run only checks the versions.
set -eu

dir=${1:-${INKSTONE_REFERENCE_ENV:-$HOME/.cache/inkstone/reference}}
pins='torch==2.15.0 transformers==5.24.0 tokenizers==0.23.3 ctranslate2==4.8.5 sentencepiece==0.2.3 safetensors==0.8.0 numpy==2.4.6 protobuf==7.36.2'

if [ ! -x "$dir/bin/python" ]; then
    python3 -m venv "$dir" || {
        echo "reference-env: cannot make a virtual environment in $dir (Debian: apt-get install python3-venv)" >&2
        exit 1
    }
fi
if ! PINS=$pins "$dir/bin/python" - <<'EOF' 2>/dev/null
import importlib.metadata, os, sys
sys.exit(any(importlib.metadata.version(pin.split("==")[0]).split("+")[0] != pin.split("==")[1] for pin in os.environ["PINS"].split()))
EOF
then
    # shellcheck disable=SC2086  # one word per package
    "$dir/bin/python" -m pip install --quiet --disable-pip-version-check $pins
fi
echo "$dir/bin/python"

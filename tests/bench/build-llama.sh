#!/bin/sh
# Build llama-bench, the opponent of run.py: build-llama.sh FOLDER [VERSION of llama-cpp-python]. The llama.cpp tree
# lies in that package's source archive; it is built for this machine, without a GPU. Needs cmake, g++ and Python.
set -eu
folder=$1
version=${2:-0.3.36}
python=${PYTHON:-/usr/bin/python3}
mkdir -p "$folder"
cd "$folder"
if [ ! -e src ]; then
    # The archive's address as pip finds it; pip's own download would want the package's build tools.
    "$python" -m pip download --no-deps --no-binary :all: --no-build-isolation -vvv "llama-cpp-python==$version" \
        > pip.log 2>&1 || true
    address=$(grep -o "https://[^ ]*llama_cpp_python-$version\.tar\.gz" pip.log | head -1)
    [ -n "$address" ] || { echo "build-llama.sh: pip finds no source archive of llama-cpp-python $version" >&2; exit 1; }
    "$python" -c 'import sys, urllib.request; urllib.request.urlretrieve(*sys.argv[1:])' "$address" src.tar.gz
    mkdir -p src.part
    tar xzf src.tar.gz -C src.part --strip-components 1
    mv src.part src
fi
cmake -S src/vendor/llama.cpp -B build -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF > cmake.log
cmake --build build --target llama-bench -j "$(nproc)" > build.log
echo "$folder/build/bin/llama-bench (llama-cpp-python $version)"

#!/bin/sh
# The end of `make demo`: demo.sh MODELS BRIGADE FETCH. Fetches the model and asks it something through four
# shard processes; without the model, the tiny one of the tests shows the same line at work.
set -eu

models=$1
brigade=$2
fetch=$3
model=$models/SmolLM2-135M-Instruct.Q4_1.gguf
tiny=tests/fixtures/llama/q8_0.gguf
prompt='Explain in one sentence why the sky is blue.'

if $fetch; then
    echo
    echo "\$ $brigade run $model -p '$prompt' --shards 4 --temp 0 -n 128"
    "$brigade" run "$model" -p "$prompt" --shards 4 --temp 0 -n 128
    exit 0
fi
echo
echo "demo: the model could not be fetched, so here is the tiny model of the tests ($tiny)."
echo "demo: its weights are random: it answers with noise, by the same programs and the same way."
echo
echo "\$ $brigade run $tiny --raw -p 'Hello' --shards 4 --temp 0 -n 32"
"$brigade" run "$tiny" --raw -p 'Hello' --shards 4 --temp 0 -n 32

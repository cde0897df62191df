#!/bin/sh
# Run fuzz targets for a bounded time each: run.sh SECONDS PROGRAM... The kept corpus (tests/fuzz/corpus_<target>) is
# read and never written; what is found new stays in build/fuzz/, as do inputs that fail.
set -eu

seconds=$1
shift
if [ $# = 0 ]; then
    echo 'fuzz: there is no target' >&2
    exit 1
fi
for program in "$@"; do
    name=$(basename "$program")
    kept=tests/fuzz/corpus_${name#fuzz_}
    work=build/fuzz/found/$name
    mkdir -p "$work"
    [ -d "$kept" ] || kept=
    echo "fuzz: $name for $seconds s"
    "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=512 -max_len=65536 \
        -print_final_stats=1 -verbosity=0 -artifact_prefix="$work/fail-" "$work" $kept 2> "$work.log" || {
        tail -n 60 "$work.log"
        echo "fuzz: $name failed; the input is in $work" >&2
        exit 1
    }
    grep -E 'number_of_executed_units|peak_rss' "$work.log" | sed 's/^/    /'
done
echo "fuzz: $# targets, nothing found"

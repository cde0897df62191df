#!/bin/sh
# `make test` and `make test-all`: run.sh quick|full. Each step is a goal of the Makefile; the first that fails ends
# it. The time of each is printed, for the whole has a budget: ten minutes for quick, on two cores.
set -eu

depth=$1
jobs=$(nproc)
began=$(date +%s)

step() {
    echo
    echo "== $1"
    shift
    at=$(date +%s)
    "$@"
    echo "== done in $(($(date +%s) - at)) s"
}

run_make() {
    ${MAKE:-make} --no-print-directory "$@"
}

fetch_models() {
    for goal in model model-gemma; do
        run_make $goal || echo "$goal: cannot be fetched; the tests that need it will be skipped"
    done
}

fuzz_seconds=10
export BRIGADE_DEPTH=$depth
if [ "$depth" = full ]; then
    fuzz_seconds=120
fi

step 'packages' run_make deps
step 'build' run_make -s -j"$jobs" all unit-build
step 'lint' run_make lint
step 'unit tests' run_make unit
step 'kernels for ARM' run_make arm
step 'models' fetch_models
step 'end to end' run_make e2e
step 'build with sanitizers' run_make -s -j"$jobs" VARIANT=san all unit-build
step 'unit tests with sanitizers' run_make VARIANT=san unit
step 'end to end with sanitizers' run_make VARIANT=san e2e
step 'fuzz' run_make fuzz FUZZ_SECONDS=$fuzz_seconds
echo
echo "all passed in $(($(date +%s) - began)) s"

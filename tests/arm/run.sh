#!/bin/sh
# `make arm`: run.sh BUILD, the command that builds build/arm/hashes. Runs it in an emulator and compares what it computes
# with build/release/hashes. Without a cross compiler or the emulator the test is skipped, which is said.
set -eu

for program in aarch64-linux-gnu-gcc qemu-aarch64-static; do
    if ! command -v $program > /dev/null; then
        echo "arm: SKIPPED, no $program here (packages gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user-static)"
        exit 0
    fi
done
$1
build/release/hashes > build/release/hashes.txt
qemu-aarch64-static build/arm/hashes > build/arm/hashes.txt
${PYTHON:-/usr/bin/python3} tests/arm/compare.py neon build/release/hashes.txt build/arm/hashes.txt

#!/bin/sh
# Man pages are well formed: man.sh PAGE... (where mandoc is missing it says so and passes).
set -eu
if ! command -v mandoc > /dev/null; then
    echo 'man pages: not checked, mandoc is not installed'
    exit 0
fi
mandoc -T lint -W warning "$@"
echo "man pages: $# well formed"

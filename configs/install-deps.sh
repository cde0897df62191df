#!/bin/sh
# Install the Debian packages of a list that are missing: install-deps.sh LIST [HEADING] (lines; # begins a comment).
# With a heading, only what stands before the line "# HEADING".
# Does nothing when all are there; asks the archive only when something is missing.
set -eu

list=$1
wanted=$(sed -e "/^# ${2:-.*no heading.*}\$/,\$d" -e 's/#.*//' "$list" | xargs)

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
    echo "deps: this is no Debian; install what these packages hold by its own means: $wanted" >&2
    exit 0 # the build itself says what it lacks
fi

missing=
for package in $wanted; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
    echo "deps: all $(echo "$wanted" | wc -w) packages are installed"
    exit 0
fi

if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo > /dev/null; then
    as_root=sudo
else
    echo "deps: missing:$missing" >&2
    echo "deps: neither root nor sudo here; have an administrator run: apt-get install$missing" >&2
    exit 1
fi
echo "deps: installing$missing"
# -qq is silent about packages; a person sees what is going on from apt's own progress lines.
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install $missing

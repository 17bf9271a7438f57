#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The catalog explains every message id that the daemon knows, and no other; journalctl accepts it.
# Usage: check-catalog.sh MESSAGE_IDS_HEADER CATALOG
set -eu
header=$1
catalog=$2
known=$(grep -o '"[0-9a-f]\{32\}"' "$header" | tr -d '"' | sort)
explained=$(sed -n 's/^-- \([0-9a-f]\{32\}\)$/\1/p' "$catalog" | sort)
if [ -z "$known" ] || [ "$known" != "$explained" ]; then
    printf 'ids of %s:\n%s\nids of %s:\n%s\n' "$header" "$known" "$catalog" "$explained" >&2
    exit 1
fi
repeated=$(printf '%s\n' "$known" | uniq -d)
if [ -n "$repeated" ]; then
    echo "used twice: $repeated" >&2
    exit 1
fi
command -v journalctl >/dev/null || exit 0
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/usr/lib/systemd/catalog" "$root/var/lib/systemd/catalog"
cp "$catalog" "$root/usr/lib/systemd/catalog/"
journalctl --root="$root" --update-catalog
for id in $known; do
    journalctl --root="$root" --dump-catalog "$id" | grep -q '^Subject: '
done

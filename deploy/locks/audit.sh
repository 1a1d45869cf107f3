#!/usr/bin/env bash
# Looks the pinned packages of the images up among known vulnerabilities; needs a package index.
set -euo pipefail
cd "$(dirname "$0")"
audit=../../.venv/bin/pip-audit
[ -x "$audit" ] || audit=pip-audit
for lock in *.txt; do
    "$audit" --strict --disable-pip --require-hashes --requirement "$lock"
done

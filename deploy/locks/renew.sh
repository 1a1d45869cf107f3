#!/usr/bin/env bash
# Renews the pinned packages of the images, one lock for each, for every platform, with the hash of every file; and those
# of a checkout, which `make` installs.
#
#     deploy/locks/renew.sh [FOLDER]      # where they are written; deploy/locks by default
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-deploy/locks}
uv=.venv/bin/uv
[ -x "$uv" ] || uv=uv

lock() {
    local image=$1 extra extras=()
    shift
    for extra; do extras+=(--extra "$extra"); done
    # Of a lock that is there, uv would keep the header and the versions.
    "$uv" pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
        pyproject.toml "${extras[@]}" --output-file "$folder/$image.txt"
}

lock dp-service dp telemetry
lock budget-service budget redis postgres telemetry
lock gateway gateway mcp page postgres-wire pinot postgres telemetry
# What an operator's commands need; no pictures, frames or SQLAlchemy.
lock tools dp budget store redis postgres postgres-wire pinot duckdb gateway page cli mcp
# As constraints, so that a checkout can be installed by its own name, which has no hash.
"$uv" pip compile --quiet --upgrade --universal --python-version 3.11 --no-header --no-annotate \
    pyproject.toml --extra all --extra spark --extra telemetry --group dev --output-file "$folder/development.constraints"

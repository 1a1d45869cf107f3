#!/usr/bin/env bash
# Installs what the campaigns `clients` and `superset` try, each once for each version of what it is made from:
#
#     tests/campaigns/clients/install.sh clients     # below build/clients
#     tests/campaigns/clients/install.sh superset    # below build/superset
set -euo pipefail
cd "$(dirname "$0")/../../.."
here=tests/campaigns/clients
folder=build/$1
python=.venv/bin/python
pinotdb=9.2.2
psycopg2=2.9.13

is_new() {
    local source
    [ -e "$folder/.ready" ] || return 0
    for source in pyproject.toml "$here/install.sh" "$here/pom.xml" "$here"/go/*; do
        [ "$folder/.ready" -nt "$source" ] || return 0
    done
    return 1
}

# Versions of Java's and Go's are in their files.
clients() {
    uv venv --quiet --clear --python $python "$folder/python"
    uv pip install --quiet --python "$folder/python/bin/python" "pinotdb[sqlalchemy]==$pinotdb" pandas \
        'psycopg[binary]==3.3.9' "psycopg2-binary==$psycopg2" asyncpg==0.32.0
    if command -v mvn >/dev/null; then
        mvn --quiet --file $here/pom.xml dependency:copy-dependencies -DoutputDirectory="$PWD/$folder/java"
    fi
    if command -v npm >/dev/null; then
        npm install --silent --no-save --no-package-lock --prefix "$folder/node" pinot-client@0.3.0 pg@8.23.1 postgres@3.4.9
    fi
    if command -v go >/dev/null; then go build -C $here/go -o "$PWD/$folder/go/ask" .; fi
}

# Superset pins older packages than Gris needs elsewhere, so it has an environment of its own. Of its packages 6.1.0 uses
# two without asking for them, and breaks with later versions of flask-caching.
superset() {
    uv venv --quiet --clear --python $python "$folder"
    uv pip install --quiet --python "$folder/bin/python" apache-superset==6.1.0 cachetools rich playwright \
        'flask-caching<2.4' "pinotdb==$pinotdb" "psycopg2-binary==$psycopg2" --editable '.[sqlalchemy]'
}

uv() { .venv/bin/uv "$@"; }
if is_new; then
    "$1"
    touch "$folder/.ready"
fi

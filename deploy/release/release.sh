#!/usr/bin/env bash
# Makes all that a release publishes in dist/, checks it, and signs it:
#
#     deploy/release/release.sh KEY       # a private key of ssh-keygen, or the public one of a key that ssh-agent holds
#
# Needs a package index, Docker, helm and ssh-keygen. Nothing is left in dist/ if anything fails.
set -euo pipefail
cd "$(dirname "$0")/../.."
key=${1:?expected a file: the key that signs}
python=.venv/bin/python
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
export GRIS_IMAGES=${GRIS_IMAGES:-gris}
.venv/bin/pip install --quiet --disable-pip-version-check --editable . --group release
$python -m deploy.release.readiness "$key" "${IMAGE_PLATFORMS:-}"
$python -m deploy.release
# From the source distribution: a checkout also holds what is not in the repository, such as keys and ledgers.
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
tar -xzf "dist/gris_dp-$version.tar.gz" -C "$source" --strip-components 1
if ! deploy/images.sh "$source" "$version"; then
    rm -rf dist
    echo "FAIL  an image is not built: Docker says why above. Nothing is left in dist/"
    exit 1
fi
$python -m deploy.release.signing "$key" "$GRIS_IMAGES" dp-service budget-service gateway gateway-catalogue tools

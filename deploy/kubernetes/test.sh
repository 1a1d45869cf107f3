#!/usr/bin/env bash
# Deploys to the cluster of KUBECONFIG, asks, kills and restarts pods, changes the policy, and deletes it again:
#
#     deploy/kubernetes/test.sh [OPTION OF PYTEST...]
#
# GRIS_TEST_DEPLOYMENT=production, =several-gateways or =regions takes another deployment than the trial. With
# KUBERNETES_LOAD='kind load docker-image' the images are built and brought into the cluster's nodes first.
# Needs helm and kubectl.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ -n "${KUBERNETES_LOAD:-}" ]; then
    images=(gris-dp-service gris-budget-service gris-gateway gris-gateway-catalogue gris-tools gris-pinot)
    GRIS_IMAGES=gris deploy/images.sh . local
    docker image inspect gris-pinot:local >/dev/null 2>&1 ||
        ${IMAGE_BUILD:-docker build --tag} gris-pinot:local deploy/pinot
    $KUBERNETES_LOAD "${images[@]/%/:local}"
fi
GRIS_TEST_KUBERNETES=1 exec .venv/bin/python -m pytest tests/kubernetes -s --durations=0 "$@"

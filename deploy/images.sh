#!/usr/bin/env bash
# Builds every image from a folder, with a tag:
#
#     deploy/images.sh FOLDER TAG
#
# GRIS_IMAGES=registry.example/gris names them registry.example/gris-dp-service and so on. With
# IMAGE_PLATFORMS=linux/amd64,linux/arm64 they are built for both, and pushed: no Docker keeps such an image.
# IMAGE_BUILD is another command that takes a name, a folder and further arguments of `docker build`.
set -euo pipefail
folder=$1 tag=$2
images=(dp-service budget-service gateway gateway-catalogue tools)
platforms=${IMAGE_PLATFORMS:-}
case $platforms in
    *,*) build="docker buildx build --push --tag" ;;
    *) build="docker build --tag" ;;
esac
export DOCKER_BUILDKIT=1
for image in "${images[@]}"; do
    # The command is words, not one.
    # shellcheck disable=SC2086
    ${IMAGE_BUILD:-$build} "${GRIS_IMAGES:-gris}-$image:$tag" "$folder" --file "$folder/deploy/Dockerfile" \
        --target "$image" ${platforms:+--platform "$platforms"}
done

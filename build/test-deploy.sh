#!/bin/bash
# Checks GitHub's workflows, and the compose file, the Helm chart and the files for Valkey, which it also tries in Docker.
. "$(dirname "$0")/lib.sh"
need_docker "$0"
lint_module deploy
"$(go_tool github.com/rhysd/actionlint/cmd/actionlint@v1.7.12)" .github/workflows/*.yml
build/image.sh
# The tests pull no image.
base=$(base_image server)
have_image "$base" || retry "$DOCKER" pull "$base"
compose=${COMPOSE:-docker-compose}
need "$compose" docker-compose
helm=$(go_tool helm.sh/helm/v3/cmd/helm@v3.19.2)
"$helm" lint --strict --quiet --set password=x deploy/chart
# kubeconform checks objects by the oldest Kubernetes that Chart.yaml names, as its OpenAPI document describes them.
kubeconform=$(go_tool github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0)
need 'curl jq openssl prometheus-redis-exporter redis-cli' curl jq openssl prometheus-redis-exporter redis-tools
kubernetes=$(retry go mod download -json k8s.io/kubernetes@v1.30.14 | jq -r .Dir)
schemas=$PWD/build/out/schemas
mkdir -p "$schemas"
for kind in core.v1.{ConfigMap,Secret,Service} apps.v1.{Deployment,StatefulSet} policy.v1.PodDisruptionBudget networking.v1.NetworkPolicy; do
  name=${kind##*.}
  jq --arg kind "$kind" '{definitions: (.definitions | map_values(
    if .format == "int-or-string" or (.description // "" | startswith("Quantity is")) then {type: ["string", "integer"]}
    elif .properties and (has("additionalProperties") | not) then .additionalProperties = false else . end)),
    "$ref": "#/definitions/io.k8s.api.\($kind)"}' "$kubernetes/api/openapi-spec/swagger.json" >"$schemas/${name,,}.json"
done
need_server
GOTHROTTLE_KUBECONFORM=$kubeconform GOTHROTTLE_SCHEMAS=$schemas GOTHROTTLE_GATEWAY_PROGRAM=$PWD/build/out/gothrottle-gateway GOTHROTTLE_HELM=$helm \
  GOTHROTTLE_COMPOSE=$compose GOTHROTTLE_DOCKER_CLI=$DOCKER GOTHROTTLE_IMAGE=$IMAGE GOTHROTTLE_INIT=$INIT GOTHROTTLE_BASE_IMAGE=$base \
  go -C deploy test -count=1 -timeout 30m .

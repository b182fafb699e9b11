#!/bin/bash
# Runs the chart in a Kubernetes cluster in Docker, which kind makes: the first call, a replica, a new value, an end. It
# needs a Docker engine that pulls images, kubectl, and CLUSTER, the name of a cluster to be made.
. "$(dirname "$0")/lib.sh"
need_docker "$0"
need_go
have kubectl || die 'kubectl is needed: please install it.'
cluster=${CLUSTER:-gothrottle-test}
kind=$(go_tool sigs.k8s.io/kind@v0.30.0)
helm=$(go_tool helm.sh/helm/v3/cmd/helm@v3.19.2)
build/image.sh

KUBECONFIG=$(mktemp)
export KUBECONFIG
trap '"$kind" delete cluster --name "$cluster"; rm -f "$KUBECONFIG"' EXIT
"$kind" create cluster --name "$cluster" --wait 120s
"$kind" load docker-image "$INIT" --name "$cluster"

upgrade() { "$helm" upgrade --install limits deploy/chart --wait --timeout 5m --set password=secret,initImage.name="$INIT" "$@"; }
# wants POD TEXT COMMAND ...  the command's reply in the pod, as soon as that is up, has the text.
wants() {
  local got try
  for try in {1..120}; do
    got=$(kubectl exec "limits-$1" -c redis -- redis-cli -e "${@:3}") && break
    sleep 1
  done
  [[ $(xargs <<<"$got") == *"$2"* ]] || die "limits-$1: ${*:3} replies '$got' at try $try, want '$2'"
}

upgrade
wants 0 '0 16 15 -1 2' GO.THROTTLE user:42 15 30 1m
upgrade --set replicas=2 --set 'policies=api QUOTA 5 1h'
wants 0 '0 5 4 -1' GO.POLICY api:bob
wants 0 1 WAIT 1 60000
wants 1 'kind quota' GO.INFO api:bob
kubectl delete pod limits-0 --wait
wants 0 '0 5 3 -1' GO.POLICY api:bob
echo 'make test-kind: passed'

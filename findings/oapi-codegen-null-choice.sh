#!/usr/bin/env bash
# oapi-codegen 2.8.2 makes the Go constant of a null among the choices of a string the text "<nil>", which no server knows,
# and says nothing. A nullable string with choices is written so in OpenAPI 3.1: {"type": ["string", "null"], "enum":
# ["a", "b", null]}. We expected it to leave null out, as it does for the type, which becomes a pointer.
set -euo pipefail
command -v go >/dev/null || { echo 'This needs Go.'; exit 2; }
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export GOBIN=$folder/bin
go install github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 2>/dev/null
cat >api.json <<'JSON'
{
  "openapi": "3.1.0",
  "info": {"title": "Lamps", "version": "1"},
  "paths": {},
  "components": {"schemas": {"Lamp": {"type": "object", "required": ["state"], "properties": {
    "state": {"type": ["string", "null"], "enum": ["on", "off", null]}
  }}}}
}
JSON
status=0
bin/oapi-codegen -generate types,skip-prune -package lamps api.json >lamps.go 2>errors || status=$?
echo "oapi-codegen 2.8.2 exits with $status: $(cat errors)"
grep -n 'LampState' lamps.go || true
[ "$status" -eq 0 ] && grep -q '"<nil>"' lamps.go || { echo 'CHANGED: null is no constant any more.'; exit 1; }
echo 'As described.'

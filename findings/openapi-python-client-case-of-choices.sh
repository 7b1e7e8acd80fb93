#!/usr/bin/env bash
# openapi-python-client 0.29.1 ends with a traceback, and writes no client at all, when two choices of one enum differ only
# in case ("open", "Open"); the error names the option literal_enums. Choices of one case are written. We expected a
# warning about that enum, as for other parts that it cannot handle, or a second name with a number.
set -euo pipefail
command -v python3 >/dev/null || { echo 'This needs Python.'; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install --quiet --disable-pip-version-check openapi-python-client==0.29.1
describe() {
  cat <<JSON
{"openapi": "3.1.0", "info": {"title": "Doors", "version": "1"},
 "paths": {"/doors": {"get": {"operationId": "listDoors", "responses": {"200": {"description": "Doors",
   "content": {"application/json": {"schema": {"\$ref": "#/components/schemas/Door"}}}}}}}},
 "components": {"schemas": {"Door": {"type": "object", "properties": {"state": {"type": "string", "enum": [$1]}}}}}}
JSON
}
generate() { tools/bin/openapi-python-client generate --path "$1.json" --output-path "$1" --meta none >"$1.out" 2>&1; }
describe '"open", "shut"' >plain.json
describe '"open", "Open"' >cased.json
generate plain
status=0
generate cased || status=$?
echo "openapi-python-client 0.29.1: choices of one case exit with 0, of two cases with $status"
grep -hE '^[A-Za-z]*Error|Duplicate' cased.out | head -n 2 || true
[ -d plain ] && [ "$status" -ne 0 ] && [ ! -d cased ] || { echo 'CHANGED: choices that differ in case are handled.'; exit 1; }
echo 'As described.'

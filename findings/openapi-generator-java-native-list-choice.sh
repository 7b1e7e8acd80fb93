#!/usr/bin/env bash
# openapi-generator 7.25.0 (java, library native) writes `List<String>.class` for a choice between a text and a list of texts
# (`anyOf`), which is no Java, and exits with 0. The default library, okhttp-gson, does not write it. We expected Java that
# compiles from both.
set -euo pipefail
for program in java mvn; do
  command -v "$program" >/dev/null || { echo "This needs $program (Debian: default-jdk, maven)."; exit 2; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mvn -q -B dependency:copy -Dartifact=org.openapitools:openapi-generator-cli:7.25.0 -DoutputDirectory=. >/dev/null
cat >api.json <<'JSON'
{
  "openapi": "3.1.0",
  "info": { "title": "Notes", "version": "1" },
  "paths": {
    "/notes": {
      "post": {
        "operationId": "createNote",
        "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Stop" } } } },
        "responses": { "204": { "description": "Created" } }
      }
    }
  },
  "components": {
    "schemas": { "Stop": { "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] } }
  }
}
JSON
for library in native okhttp-gson; do
  java -jar openapi-generator-cli-7.25.0.jar generate -i api.json -g java --library "$library" -o "$library" >/dev/null 2>&1
  found=$(grep -c 'List<String>\.class' "$library/src/main/java/org/openapitools/client/model/Stop.java" || true)
  echo "openapi-generator 7.25.0, library $library: exits with 0, and writes List<String>.class $found times."
  case $library in
    native) [ "$found" -gt 0 ] || { echo 'CHANGED: native writes it no more.'; exit 1; } ;;
    *) [ "$found" -eq 0 ] || { echo 'CHANGED: okhttp-gson writes it, too.'; exit 1; } ;;
  esac
done
echo 'As described.'

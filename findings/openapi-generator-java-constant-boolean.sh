#!/usr/bin/env bash
# openapi-generator 7.25.0 (java, the default library okhttp-gson) writes Java that does not compile for a boolean that is
# always true (`const: true`, or an enum with true alone): an enum whose constructor takes a Boolean gets the text "true".
# It exits with 0. We expected TRUE(true), or a plain Boolean.
set -euo pipefail
for program in java javac mvn; do
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
      "delete": {
        "operationId": "deleteNotes",
        "responses": {
          "200": {
            "description": "Deleted",
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Success" } } }
          }
        }
      }
    }
  },
  "components": {
    "schemas": {
      "Success": {
        "type": "object",
        "required": ["success"],
        "properties": { "success": { "type": "boolean", "const": true } }
      }
    }
  }
}
JSON
java -jar openapi-generator-cli-7.25.0.jar generate -i api.json -g java -o out >/dev/null 2>&1
echo "openapi-generator 7.25.0 exits with 0; $(javac -version 2>&1) on what it wrote:"
(cd out && mvn -q -B compile >compile.log 2>&1) && { echo 'CHANGED: it compiles.'; exit 1; }
grep -m 1 'ERROR.*Success.java' out/compile.log || { echo 'CHANGED: it fails for another reason.'; exit 1; }
echo 'As described.'

#!/usr/bin/env bash
# orval 8.38.0 writes TypeScript that does not compile for an operation whose body is either JSON or bytes: it passes the
# union of both as the body of fetch and never turns the JSON into text. It exits with 0. The same operation
# with JSON alone compiles. We expected a function for each media type, or JSON.stringify for what is no Blob.
set -euo pipefail
command -v node >/dev/null || { echo 'This needs Node.js.'; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --no-audit --no-fund orval@8.38.0 typescript@5.9.3 >/dev/null
cat >config.mjs <<'JS'
export default Object.fromEntries(
  ['one', 'two'].map((name) => [name, { input: `${name}.json`, output: { target: `${name}.ts`, client: 'fetch', mode: 'single' } }]),
)
JS
node - <<'JS'
const { writeFileSync } = require('node:fs')
const json = { schema: { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] } }
const bytes = { schema: { type: 'string', format: 'binary' } }
const describe = (content) => ({
  openapi: '3.1.0',
  info: { title: 'Notes', version: '1' },
  paths: { '/notes': { post: { operationId: 'addNote', requestBody: { required: true, content }, responses: { 204: { description: 'Added' } } } } },
})
writeFileSync('one.json', JSON.stringify(describe({ 'application/json': json })))
writeFileSync('two.json', JSON.stringify(describe({ 'application/json': json, 'application/octet-stream': bytes })))
JS
npx orval --config config.mjs >/dev/null 2>&1 || { echo 'CHANGED: orval fails.'; exit 1; }
compile() { npx tsc --noEmit --strict --skipLibCheck --target es2022 --module esnext --moduleResolution bundler --lib es2022,dom,dom.iterable "$1"; }
compile one.ts
echo 'orval 8.38.0 exits with 0; JSON alone compiles; JSON or bytes:'
compile two.ts && { echo 'CHANGED: it compiles.'; exit 1; }
echo 'As described.'

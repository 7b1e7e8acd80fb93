#!/usr/bin/env bash
# s3rver 3.7.1 lists a folder among the common prefixes only if an object lies directly in it: with a/b/file and c in a
# bucket, a list with the delimiter "/" tells c and no a/, as if the former object were not there. Without an object at
# the top it tells nothing at all. We expected what S3 documents: every key is rolled up to its first delimiter.
set -euo pipefail
command -v node >/dev/null || { echo 'This needs Node.js.'; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --no-audit --no-fund s3rver@3.7.1 @aws-sdk/client-s3@3.901.0 >/dev/null
cat >list.js <<'JS'
import S3rver from 's3rver'
import { ListObjectsV2Command, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'

const Bucket = 'shelf'
const server = new S3rver({ port: 0, address: '127.0.0.1', silent: true, directory: 'data', configureBuckets: [{ name: Bucket }] })
const { port } = await server.run()
const client = new S3Client({
  endpoint: `http://127.0.0.1:${port}`, region: 'us-east-1', forcePathStyle: true,
  credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
})
for (const Key of ['a/b/file', 'c', 'd/file']) await client.send(new PutObjectCommand({ Bucket, Key, Body: 'x' }))
const { CommonPrefixes = [], Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, Delimiter: '/' }))
console.log([...CommonPrefixes.map(({ Prefix }) => Prefix), ...Contents.map(({ Key }) => Key)].join(' '))
await server.close()
process.exit(0)
JS
listed=$(node list.js 2>/dev/null)
echo "s3rver 3.7.1, of a/b/file, c and d/file: $listed"
[ "$listed" = 'd/ c' ] || { echo 'CHANGED: folders that hold only folders are listed.'; exit 1; }
echo 'As described.'

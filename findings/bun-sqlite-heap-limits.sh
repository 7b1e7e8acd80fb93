#!/usr/bin/env bash
# bun:sqlite 1.4.5 keeps no statistics of memory, so SQLite's limits of it bound nothing: with `pragma hard_heap_limit`
# of 20 MB, a cache of 64 MB still fills, and no statement fails. We expected what SQLite documents: allocations beyond
# the hard limit fail, and near the soft limit a full cache takes the place of its own pages.
set -euo pipefail
command -v npm >/dev/null || { echo 'This needs npm.'; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --no-audit --no-fund bun@1.4.5 >/dev/null
cat >fill.ts <<'TS'
import { Database } from 'bun:sqlite'

new Database('data.db').exec(`create table texts (text text);
  with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
  insert into texts select hex(zeroblob(1500)) from n`)
const db = new Database('data.db')
db.exec('pragma cache_size = -64000; pragma soft_heap_limit = 10000000; pragma hard_heap_limit = 20000000')
const before = process.memoryUsage().rss
db.query('select sum(length(text)) from texts').values()
console.log(Math.round((process.memoryUsage().rss - before) / 1e6))
TS
grown=$(./node_modules/.bin/bun fill.ts)
echo "bun 1.4.5: with a hard limit of 20 MB, the cache grew by $grown MB."
[ "$grown" -gt 30 ] || { echo 'CHANGED: the limits hold.'; exit 1; }
echo 'As described.'

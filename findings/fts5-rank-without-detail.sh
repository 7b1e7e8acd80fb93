#!/usr/bin/env bash
# FTS5 (SQLite 3.54.1 of bun 1.4.5) ranks nothing in a contentless table with `detail=none` or `detail=column`: every rank is 0, so
# `order by rank` has the order of the numbers. There is no error, and matches are found as before. We expected the ranks
# of `detail=full`, or a refusal as for phrases and column filters, because a rank needs counts only, and each word is
# there once.
set -euo pipefail
command -v npm >/dev/null || { echo 'This needs npm.'; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --no-audit --no-fund bun@1.4.5 >/dev/null
cat >rank.ts <<'TS'
import { Database } from 'bun:sqlite'

const db = new Database(':memory:')
const version = db.query('select sqlite_version()').values()[0]
const ranks = ['full', 'column', 'none'].map((detail) => {
  db.exec(`create virtual table ${detail} using fts5(words, content='', contentless_delete=1, detail=${detail})`)
  for (let n = 1; n <= 100; n++)
    db.exec(`insert into ${detail} (rowid, words) values (${n}, '${n % 10 ? 'common' : 'rare'} ${'more '.repeat(n % 7)}')`)
  const found = db.query(`select rank from ${detail} where ${detail} match 'rare' order by rank`).values().flat()
  return `${detail}: ${found.length} found, ${new Set(found).size} ranks`
})
console.log(`${version}; ${ranks.join('; ')}`)
TS
seen=$(./node_modules/.bin/bun rank.ts)
echo "$seen"
[[ $seen == *'column: 10 found, 1 ranks; none: 10 found, 1 ranks' ]] || { echo 'CHANGED: they are ranked.'; exit 1; }
[[ $seen == *'full: 10 found, 1 ranks'* ]] && { echo 'CHANGED: full detail is not ranked either.'; exit 1; }
echo 'As described.'

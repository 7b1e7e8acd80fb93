#!/usr/bin/env bash
# FTS5 (SQLite 3.54.1 of bun 1.4.5) merges its segments in bursts: of 400 equal transactions of ten short documents, the median
# adds 20 KiB to the log, and the longest 410 KiB, because `automerge` does whole units of work for several levels in the one
# transaction that completes a unit. We expected the work to be spread over the transactions. With `automerge` off and a `merge`
# of four pages in each transaction, the longest adds 87 KiB, and all of them together 11 MiB instead of 8.
set -euo pipefail
command -v npm >/dev/null || { echo 'This needs npm.'; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --no-audit --no-fund bun@1.4.5 >/dev/null
cat >merge.ts <<'TS'
import { Database } from 'bun:sqlite'
import { statSync } from 'node:fs'

let seed = 1
const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647
const text = () => Array.from({ length: 40 }, () => `w${Math.floor(3_000 ** random())}`).join(' ')

function measure(name: string, pages: number) {
  const db = new Database(`${name}.db`)
  db.exec('pragma page_size = 2048; pragma journal_mode = wal; pragma wal_autocheckpoint = 0; pragma synchronous = off')
  db.exec(`create virtual table s using fts5(words, content='', contentless_delete=1)`)
  if (pages) db.exec(`insert into s(s, rank) values ('automerge', 0)`)
  const insert = db.prepare('insert into s(rowid, words) values (?, ?)')
  const added: number[] = []
  for (let n = 0; n < 400; n++) {
    const before = statSync(`${name}.db-wal`).size
    db.transaction(() => {
      for (let at = 0; at < 10; at++) insert.run(n * 10 + at + 1, text())
      if (pages) db.exec(`insert into s(s, rank) values ('merge', ${pages})`)
    })()
    added.push(statSync(`${name}.db-wal`).size - before)
  }
  added.sort((one, other) => one - other)
  const sum = added.reduce((total, one) => total + one)
  return { name, median: added[200]!, most: added[399]!, sum }
}

const [own, small] = [measure('automerge', 0), measure('merge', 4)]
for (const { name, median, most, sum } of [own, small])
  console.log(`${name}: median ${median >> 10} KiB, most ${most >> 10} KiB, all ${sum >> 20} MiB`)
const isAsDescribed = own.most > 8 * own.median && small.most < 5 * small.median
console.log(isAsDescribed ? 'bursts' : 'even')
TS
seen=$(./node_modules/.bin/bun merge.ts)
echo "$seen"
[[ $seen == *bursts ]] || { echo 'CHANGED: merges are spread.'; exit 1; }
echo 'As described.'

// `bun test/bench/entity-size.ts [rows]`: how much room entities of eight fields take, by table and index.
import { Database } from 'bun:sqlite'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'

const rows = Number(process.argv[2] ?? 100_000)
const FIRST_NAMES = ['Ada', 'Grace', 'Alan', 'Edsger', 'Barbara', 'Donald', 'Leslie', 'Tony']
const LAST_NAMES = ['Rossi', 'Hopper', 'Turing', 'Dijkstra', 'Liskov', 'Knuth', 'Lamport', 'Hoare']
const STAGES = ['lead', 'won', 'lost', 'open', 'customer']
const WORDS = 'A note on what was said and agreed, when to call again, and who else would like to hear of it. '

const contactsBlueprint = {
  key: 'contacts',
  name: 'Contacts',
  fields: [
    { key: 'name', type: 'string' },
    { key: 'email', type: 'email' },
    { key: 'stage', type: 'string', indexed: true },
    { key: 'worth', type: 'number', indexed: true },
    { key: 'company', type: 'string', indexed: true },
    { key: 'active', type: 'boolean' },
    { key: 'born', type: 'date' },
    { key: 'notes', type: 'text' },
  ],
}

/** A contact, of some 400 bytes as JSON. */
const contact = (n: number) => ({
  name: `${FIRST_NAMES[n % 8]} ${LAST_NAMES[(n >> 3) % 8]} ${n}`,
  email: `person${n}@example.com`,
  stage: STAGES[(n * 7) % 5],
  worth: (n * 7_919) % 10_007,
  company: `company-${(n * 31) % 1_000}`,
  active: n % 3 > 0,
  born: `19${50 + (n % 50)}-0${1 + (n % 9)}-1${n % 10}`,
  notes: `${n}: ${WORDS.repeat(2)}`,
})

const folder = createTempFolder()
const surroundings = { at: folder, env: { ATOLL_IMPORT_LIMIT: '100000000000', ATOLL_RATE_LIMITS: 'off' } }
await createTenantByCli(surroundings, 'acme')
{
  await using server = await startAtoll(surroundings)
  const headers = { ...(await signIn(server.url, 'acme')), 'content-type': 'application/json' }
  const path = `${server.url}/api/blueprints`
  await fetch(path, { method: 'POST', headers, body: JSON.stringify(contactsBlueprint) })
  const began = performance.now()
  const body = Array.from({ length: rows }, (_, n) => JSON.stringify(contact(n))).join('\n')
  const answer = await fetch(`${path}/contacts/entities/import?format=ndjson`, { method: 'POST', headers, body })
  const { imported } = (await answer.json()) as { imported: number }
  const seconds = (performance.now() - began) / 1000
  console.log(
    `${imported} imported, ${Math.round(imported / seconds)}/s; ${(body.length / rows).toFixed(0)} bytes of JSON each`,
  )
}
const file = [join(folder, 'tenants', 'acme', 'data.db'), join(folder, 'acme', 'data.db')].find(existsSync)!
const database = new Database(file, { readonly: true })
const sizes = database
  .query('select name, sum(pgsize), sum(unused) from dbstat group by name having sum(pgsize) > 100000 order by 2 desc')
  .values() as [string, number, number][]
for (const [name, bytes, unused] of sizes)
  console.log(
    `${name.padEnd(40)} ${(bytes / 1e6).toFixed(1).padStart(6)} MB  ${(bytes / rows).toFixed(0).padStart(5)} bytes a row, ${((unused / bytes) * 100).toFixed(0)} % of it unused`,
  )
const [[all]] = database.query('select sum(pgsize) from dbstat').values() as [[number]]
console.log(`${'the whole file'.padEnd(40)} ${(all / 1e6).toFixed(1).padStart(6)} MB`)
if (process.env.KEEP) console.log(file)
database.close()
if (!process.env.KEEP) rmSync(folder, { recursive: true })

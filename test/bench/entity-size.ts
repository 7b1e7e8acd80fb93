// `bun test/bench/entity-size.ts [rows]`: how much room entities of eight fields take, by table and index, and how much
// one table with a column for each field and five indexes takes for the same.
import { Database } from 'bun:sqlite'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'

const rows = Number(process.argv[2] ?? 100_000)
const MAX_RATIO = 1.5 // of the plain table
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

/** A contact, of some 360 bytes as JSON. */
const contact = (n: number) => ({
  name: `${FIRST_NAMES[n % 8]} ${LAST_NAMES[(n >> 3) % 8]} ${n}`,
  email: `person${n}@example.com`,
  stage: STAGES[(n * 7) % 5]!,
  worth: (n * 7_919) % 10_007,
  company: `company-${(n * 31) % 1_000}`,
  active: n % 3 > 0,
  born: `19${50 + (n % 50)}-0${1 + (n % 9)}-1${n % 10}`,
  notes: `${n}: ${WORDS.repeat(2)}`,
})

/** The contacts in a table of their own, with ids of 15 characters and times as texts. */
function createPlainTable(file: string) {
  const database = new Database(file)
  database.exec(`pragma page_size = 4096;
    create table contacts (id text primary key not null, name text, email text, stage text, worth numeric, company text,
      active boolean, born text, notes text, owner text, created text, updated text);
    create index by_stage on contacts (stage); create index by_worth on contacts (worth);
    create index by_company on contacts (company); create index by_created on contacts (created);
    create index by_owner on contacts (owner)`)
  const insert = database.prepare('insert into contacts values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
  const makeId = () => crypto.randomUUID().replaceAll('-', '').slice(0, 15)
  const [owner, companies] = [makeId(), Array.from({ length: 1_000 }, makeId)]
  database.transaction(() => {
    for (let n = 0; n < rows; n++) {
      const { name, email, stage, worth, active, born, notes } = contact(n)
      const time = new Date(1.7e12 + n * 10).toISOString()
      const company = companies[(n * 31) % 1_000]!
      insert.run(
        ...[makeId(), name, email, stage, worth, company, active, `${born} 00:00:00.000Z`, notes, owner, time, time],
      )
    }
  })()
  insert.finalize()
  database.close()
}

/** Prints the tables and indexes of a file that take some room, and returns the bytes of all. */
function printSizes(file: string): number {
  const database = new Database(file, { readonly: true })
  const sizes = database
    .query('select name, sum(pgsize), sum(unused) from dbstat group by name order by 2 desc')
    .values() as [string, number, number][]
  database.close()
  const total = sizes.reduce((sum, [, bytes]) => sum + bytes, 0)
  const line = (name: string, bytes: number) => `${name.padEnd(36)} ${(bytes / 1e6).toFixed(1).padStart(6)} MB`
  for (const [name, bytes, unused] of sizes)
    if (bytes > total / 100)
      console.log(
        `${line(name, bytes)} ${(bytes / rows).toFixed(0).padStart(5)} bytes a row, ${((unused / bytes) * 100).toFixed(0)} % unused`,
      )
  console.log(line('the whole file', total))
  return total
}

const folder = createTempFolder()
const surroundings = { at: folder, env: { ATOLL_IMPORT_LIMIT: '100000000000' } }
await createTenantByCli(surroundings, 'acme')
{
  await using server = await startAtoll(surroundings)
  const headers = { ...(await signIn(server.url, 'acme')), 'content-type': 'application/json' }
  const path = `${server.url}/api/blueprints`
  await fetch(path, { method: 'POST', headers, body: JSON.stringify(contactsBlueprint) })
  const body = Array.from({ length: rows }, (_, n) => JSON.stringify(contact(n))).join('\n')
  const began = performance.now()
  const answer = await fetch(`${path}/contacts/entities/import?format=ndjson`, { method: 'POST', headers, body })
  const { imported } = (await answer.json()) as { imported: number }
  const perSecond = Math.round(imported / ((performance.now() - began) / 1000))
  console.log(`${imported} entities of ${Math.round(body.length / rows)} bytes imported, ${perSecond}/s`)
  await server.end('SIGTERM')
}
const size = printSizes(join(folder, 'tenants', 'acme', 'data.db'))
createPlainTable(join(folder, 'plain.db'))
const ratio = size / printSizes(join(folder, 'plain.db'))
console.log(`${ratio.toFixed(2)} times the plain table (at most ${MAX_RATIO}: ${ratio <= MAX_RATIO ? 'yes' : 'NO'})`)
rmSync(folder, { recursive: true })

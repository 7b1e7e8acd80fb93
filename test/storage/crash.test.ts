// engine: sqlite
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { extractDocumentJson } from '../../src/entities/store/serializer'
import { apiCaller, createTempFolder, createTenantByCli, type RunningAtoll, signIn, startAtoll } from '../fakes/cli'

const THING_TAGS = ['one', 'two', 'three']
const WRITER_COUNT = 24
type Acknowledged = { _id: string; name: string; n: number }

/** Creates entities with concurrent callers until the server is killed. */
async function createUntilKilled(
  { url }: RunningAtoll,
  headers: Record<string, string>,
  round: number,
  acknowledged: Acknowledged[],
) {
  let n = 0
  const call = apiCaller(url, headers)
  const writer = async () => {
    for (;;) {
      const number = round * 1_000_000 + n++
      const thing = { name: `thing ${number}`, n: number, tags: THING_TAGS.slice(0, 1 + (number % 3)) }
      const answer = await call('POST', '/api/blueprints/things/entities', thing).catch(() => undefined)
      if (!answer) return
      expect(answer.status).toBe(201)
      acknowledged.push({ _id: answer.body._id, name: thing.name, n: number })
    }
  }
  await Promise.all(Array.from({ length: WRITER_COUNT }, writer))
}

/** Does the work for each item, 16 at once. */
async function forEachConcurrently<T>(list: T[], work: (one: T) => Promise<void>) {
  const remaining = list.values()
  const worker = async () => {
    for (const one of remaining) await work(one)
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}

test('every acknowledged entity survives `kill -9` and is found by filters', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  const acknowledged: Acknowledged[] = []
  {
    await using server = await startAtoll(at)
    const fields = [
      { key: 'name', type: 'string', required: true, indexed: true },
      { key: 'n', type: 'integer', indexed: true },
      { key: 'tags', type: 'string', multi: true },
    ]
    const blueprint = { key: 'things', name: 'Things', fields }
    const made = await apiCaller(server.url, await signIn(server.url, 'acme'))('POST', '/api/blueprints', blueprint)
    expect(made.status).toBe(201)
  }

  for (let round = 0; round < 3; round++) {
    const before = acknowledged.length
    {
      await using server = await startAtoll(at)
      const headers = await signIn(server.url, 'acme')
      const loaded = createUntilKilled(server, headers, round, acknowledged)
      while (acknowledged.length < before + 50) await Bun.sleep(5)
      await Bun.sleep(Math.random() * 500)
      process.kill(server.pid, 'SIGKILL')
      await server.exited
      await loaded
    }

    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    await forEachConcurrently(acknowledged.slice(before), async ({ _id, name, n }) => {
      const { status, body } = await call('GET', `/api/blueprints/things/entities/${_id}`)
      expect([status, body._id, body.name, body.n]).toEqual([200, _id, name, n])
    })
    // The last entities are the closest to the kill.
    await forEachConcurrently(acknowledged.slice(before).slice(-150), async ({ _id, n }) => {
      const { body } = await call('GET', `/api/blueprints/things/entities?n=${n}`)
      expect(body.map((one: { _id: string }) => one._id)).toEqual([_id])
    })
    await server.end('SIGTERM')
    assertIntact(join(at.at, 'tenants/acme/data.db'), acknowledged)
  }
})

/** Checks the file with a library that did not write it. */
function assertIntact(file: string, acknowledged: Acknowledged[]) {
  const db = new BetterSqlite(file, { readonly: true })
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
  expect(db.pragma('foreign_key_check')).toEqual([])
  const storedIds = new Set(db.prepare('select coalesce(_id, identifier) from entities').pluck().all())
  expect(acknowledged.filter(({ _id }) => !storedIds.has(_id))).toEqual([])

  const rows = db.prepare(
    `select e.shown, count(i.entity) as found, count(distinct i.field || ' ' || i.value) as kinds
     from entities e left join entity_index i on i.entity = e.seq and i.created = e.created group by e.seq`,
  )
  for (const { shown, found, kinds } of rows.all() as { shown: string; found: number; kinds: number }[]) {
    const expected = 2 + (JSON.parse(extractDocumentJson(shown)) as { tags: string[] }).tags.length
    expect([found, kinds], shown).toEqual([expected, expected])
  }
  const orphans = db.prepare('select count(*) from entity_index where entity not in (select seq from entities)')
  expect(orphans.pluck().get()).toBe(0)
  db.close()
}

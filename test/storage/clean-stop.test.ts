// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { DatabasePool } from '../../src/storage/pool'
import { apiCaller, createTempFolder, createTenantByCli, runAtoll, signIn, startAtoll } from '../fakes/cli'
import { fileEngines, freshFolder } from './engines'
import { freshLocation, migrations } from './fixtures'

setDefaultTimeout(60_000)

/** Checks and queries a copy of the database file without its log by an independent library. */
function inspectCopy(file: string, sql: string) {
  const copy = join(freshFolder(), 'copy.db')
  copyFileSync(file, copy)
  const database = new BetterSqlite(copy)
  try {
    return { integrity: database.pragma('integrity_check', { simple: true }), rows: database.prepare(sql).raw().get() }
  } finally {
    database.close()
  }
}

test.each(fileEngines)('%s: close during a checkpoint leaves one complete file and no log', async (_, engine) => {
  for (const pause of [0, 5, 15, 30]) {
    const folder = freshFolder()
    const storage = new DatabasePool(engine({ folder }), { openCount: 2, deadline: 20_000 })
    const at = freshLocation()
    const store = storage.getStore(at, migrations)
    const file = join(folder, at.file)
    const add = (first: number, length: number) =>
      store.write(async (tx) => {
        for (let row = first; row < first + 10_000; row++)
          await tx.query('insert into things (id, count, doc) values (?, ?, ?)', [
            `row ${row}`,
            row,
            'x'.repeat(length),
          ])
      })
    await add(0, 1)
    await Bun.sleep(300) // the first checkpoint has to start its thread
    // The next checkpoint copies 80 MB.
    await add(10_000, 4_000)
    await Bun.sleep(pause)
    await storage.close()
    expect([existsSync(`${file}-wal`), existsSync(`${file}-shm`)]).toEqual([false, false])
    expect(inspectCopy(file, 'select count(*) from things')).toEqual({ integrity: 'ok', rows: [20_000] })
  }
})

test('a server that is stopped under load leaves a data.db that is complete without its log', async () => {
  const at = { at: createTempFolder(), env: { ATOLL_DURABILITY: 'full' } }
  await createTenantByCli(at, 'acme')
  let imported = 0
  {
    await using server = await startAtoll(at)
    const headers = await signIn(server.url, 'acme')
    const call = apiCaller(server.url, headers)
    const things = { key: 'things', name: 'Things', fields: [{ key: 'text', type: 'string' }] }
    expect((await call('POST', '/api/blueprints', things)).status).toBe(201)
    const writer = async () => {
      for (;;) {
        const operations = Array.from({ length: 100 }, () => ({ op: 'create', data: { text: 'x'.repeat(2_000) } }))
        const answer = await call('POST', '/api/blueprints/things/entities/batch', { operations }).catch(
          () => undefined,
        )
        if (answer?.status !== 200) return
        imported += operations.length
      }
    }
    const writers = Promise.all(Array.from({ length: 4 }, writer))
    while (imported < 6_000) await Bun.sleep(1)
    expect(await server.end('SIGTERM')).toBe(0)
    await writers
  }
  const file = join(at.at, 'tenants/acme/data.db')
  expect([existsSync(`${file}-wal`), existsSync(`${file}-shm`)]).toEqual([false, false])
  const { integrity, rows } = inspectCopy(file, 'select count(*) from entities')
  expect(integrity).toBe('ok')
  expect((rows as number[])[0]).toBeGreaterThanOrEqual(imported)
  expect((await runAtoll('doctor --json', at)).code).toBe(0)
})

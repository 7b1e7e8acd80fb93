import { describe, expect, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { findPostgresBin, startPostgres } from '../fakes/postgres'
import { databaseUrl } from '../storage/engines'
import { waitUntil } from '../wait-until'

// This test has a PostgreSQL server of its own, because it kills it.
describe.skipIf(!databaseUrl || !findPostgresBin())('a killed PostgreSQL server', () => {
  test('a killed PostgreSQL loses no acknowledged write, writes get 503 meanwhile, and Atoll recovers by itself', async () => {
    const database = await startPostgres({ durable: true })
    try {
      const at = { at: createTempFolder(), env: { ATOLL_DATABASE_URL: database.url, ATOLL_DURABILITY: 'full' } }
      await createTenantByCli(at, 'acme')
      await using server = await startAtoll(at)
      const call = apiCaller(server.url, await signIn(server.url, 'acme'))
      const fields = [{ key: 'n', type: 'integer' }]
      expect((await call('POST', '/api/blueprints', { key: 'things', name: 'Things', fields })).status).toBe(201)

      const acknowledged: string[] = []
      const statuses = new Map<number, number>()
      let [n, slowest, running] = [0, 0, true]
      const writer = async () => {
        while (running) {
          const began = performance.now()
          const { status, body } = await call('POST', '/api/blueprints/things/entities', { n: n++ })
          slowest = Math.max(slowest, performance.now() - began)
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          if (status === 201) acknowledged.push(body._id)
          else await Bun.sleep(20)
        }
      }
      const writers = Array.from({ length: 16 }, writer)
      for (let round = 0; round < 2; round++) {
        const before = acknowledged.length
        while (acknowledged.length < before + 100) await Bun.sleep(10)
        await database.kill()
        await Bun.sleep(700)
        await database.start()
        const after = acknowledged.length
        await waitUntil(
          () => acknowledged.length,
          (count) => count > after + 20,
          30_000,
        )
        expect(acknowledged.length).toBeGreaterThan(after)
      }
      running = false
      await Promise.all(writers)
      expect([...statuses.keys()].sort()).toEqual([201, 503])
      expect(slowest).toBeLessThan(5_000)

      const storedIds = new Set<string>()
      for (let page = 1; ; page++) {
        const { status, body } = await call(
          'GET',
          `/api/blueprints/things/entities?$limit=1000&$page=${page}&$sort=created`,
        )
        expect(status).toBe(200)
        for (const { _id } of body) storedIds.add(_id)
        if (body.length < 1000) break
      }
      expect(acknowledged.filter((id) => !storedIds.has(id))).toEqual([])
    } finally {
      await database.stop()
    }
  }, 60_000)
})

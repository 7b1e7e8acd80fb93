import { afterAll, describe, expect, test } from 'bun:test'
import { tenantMigrations } from '../../migrations'
import { DatabasePool } from '../../src/storage/pool'
import { bumpVersion } from '../../src/tenancy/cache'
import { databaseUrl, postgres } from '../storage/engines'

const ISOLATION_LEVELS = ['repeatable read', 'serializable']

describe.skipIf(!databaseUrl).each(ISOLATION_LEVELS)('a database with the default isolation %s', (isolation) => {
  const url = new URL(databaseUrl ?? 'postgres://nowhere')
  url.searchParams.set('options', `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}`)
  const storage = new DatabasePool(postgres(`${url}`), { openCount: 5, deadline: 2_000 })
  const plain = new DatabasePool(postgres(), { openCount: 5, deadline: 2_000 })
  afterAll(() => Promise.all([storage.close(), plain.close()]))

  test('a write that waited for another write sees its changes', async () => {
    const place = { tenant: 'a', file: '', identity: Bun.randomUUIDv7() as string, bucket: 'snapshots' }
    const [one, other] = [plain.getStore(place, tenantMigrations), storage.getStore(place, tenantMigrations)]
    expect(await other.write((tx) => tx.query('show default_transaction_isolation'))).toEqual([[isolation]])
    const begun = Promise.withResolvers<void>()
    const first = one.write(async (tx) => {
      begun.resolve()
      await tx.query('select pg_sleep(0.3)')
      await bumpVersion(tx, 'actors')
    })
    await begun.promise
    expect(await other.write((tx) => tx.query('select topic, version from versions'))).toEqual([['actors', 1]])
    await first
  })
})

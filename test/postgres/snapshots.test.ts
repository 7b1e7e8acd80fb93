import { afterAll, describe, expect, test } from 'bun:test'
import { tenantMigrations } from '../../migrations'
import { Storage } from '../../src/storage/store'
import { touch } from '../../src/tenancy/memory'
import { databaseUrl, postgres } from '../storage/engines'

const DEFAULTS = ['repeatable read', 'serializable']

describe.skipIf(!databaseUrl).each(DEFAULTS)('where transactions are %s by default', (isolation) => {
  const url = new URL(databaseUrl ?? 'postgres://nowhere')
  url.searchParams.set('options', `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}`)
  const storage = new Storage(postgres(`${url}`), { open: 5, deadline: 2_000 })
  const plain = new Storage(postgres(), { open: 5, deadline: 2_000 })
  afterAll(() => Promise.all([storage.close(), plain.close()]))

  test('a write that waited for another one sees what that has done', async () => {
    const place = { tenant: 'a', file: '', identity: Bun.randomUUIDv7() as string, bucket: 'snapshots' }
    const [one, other] = [plain.store(place, tenantMigrations), storage.store(place, tenantMigrations)]
    expect(await other.write((tx) => tx.ask('show default_transaction_isolation'))).toEqual([[isolation]])
    const begun = Promise.withResolvers<void>()
    const first = one.write(async (tx) => {
      begun.resolve()
      await tx.ask('select pg_sleep(0.3)')
      await touch(tx, 'actors')
    })
    await begun.promise
    expect(await other.write((tx) => tx.ask('select topic, version from versions'))).toEqual([['actors', 1]])
    await first
  })
})

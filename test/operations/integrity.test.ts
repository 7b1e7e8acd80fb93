import { expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { config } from '../../src/config'
import { withLease } from '../../src/jobs/with-lease'
import { listDamaged } from '../../src/operations/installation-health'
import { checkIntegrity, checkIntegrityWeekly } from '../../src/operations/integrity'
import { databases, tenantFolder } from '../../src/tenancy/databases'
import { createTestTenant } from '../test-tenant'

setDefaultTimeout(30_000)

test('an intact database is checked once a week and emits no event', async () => {
  const { tenant } = await createTestTenant()
  expect(await checkIntegrity(tenant)).toEqual([])
  const outcomes: unknown[] = []
  await withLease(tenant, 'housekeeping', async (held) => {
    for (let n = 0; n < 2; n++) outcomes.push(await checkIntegrityWeekly(held))
  })
  expect(outcomes).toMatchObject([{ state: 'done', value: [] }, { state: 'taken' }])
  expect(await tenant.db.query("select 1 from events where source = 'storage'")).toEqual([])
})

test.skipIf(!!config.ATOLL_DATABASE_URL)(
  'checkIntegrity emits the event database-damaged for a database with damaged pages',
  async () => {
    const { tenant, id, as } = await createTestTenant()
    const rows = Array.from({ length: 400 }, (_, n) => ['padding', `${n}`, 'x'.repeat(900)])
    await as('admin').post('/blueprints', { key: 'things', name: 'Things', fields: [{ key: 'text', type: 'string' }] })
    for (let n = 0; n < rows.length; n += 100) {
      const operations = rows.slice(n, n + 100).map(([, , text]) => ({ op: 'create', data: { text } }))
      expect((await as('admin').post('/blueprints/things/entities/batch', { operations })).status).toBe(200)
    }
    const place = (await tenant.db.query("select rootpage from sqlite_schema where name = 'entities'"))[0]![0] as number
    await databases.release({ tenant: id, file: `${id}/data.db`, identity: await identityOf(id) })
    const file = join(tenantFolder(id), 'data.db')
    const bytes = readFileSync(file)
    // The last pages hold entities, which the event does not need.
    for (let page = bytes.length / 4_096 - 20; page < bytes.length / 4_096; page++)
      if (page !== place - 1) bytes.fill(0xaa, page * 4_096, page * 4_096 + 24)
    writeFileSync(file, bytes)
    const flaws = await checkIntegrity(tenant)
    expect(flaws.length).toBeGreaterThan(0)
    const events = await tenant.db
      .query("select event_name from events where source = 'storage'")
      .catch(() => 'unreadable')
    expect(events).toEqual([['database-damaged']])
    // Until a check finds it sound, the operator sees it in the health, and metrics count it.
    expect(listDamaged().find((damage) => damage.tenant === id)).toMatchObject({ reason: flaws[0] })
  },
)

async function identityOf(id: string) {
  const { registry } = await import('../../src/tenancy/registry')
  return (await registry.db.query('select uid from tenants where id = ?', [id]))[0]![0] as string
}

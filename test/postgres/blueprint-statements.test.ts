import { afterAll, describe, expect, test } from 'bun:test'
import '../../src/app'
import { tenantMigrations } from '../../migrations'
import type { Actor } from '../../src/accounts/actors'
import { getModel, insert } from '../../src/blueprints/blueprints'
import { readLastEntityNumber } from '../../src/blueprints/number-sequence'
import { DatabasePool } from '../../src/storage/pool'
import type { Engine, RunQuery } from '../../src/storage/port'
import type { Tenant } from '../../src/tenancy/tenants'
import { queryDatabase } from '../fakes/postgres'
import { databaseUrl, postgres } from '../storage/engines'
import { freshLocation } from '../storage/fixtures'

const ENTITIES = 5_000
const MAX_ROWS_READ = 10

type Statement = { sql: string; params?: unknown[] }

/** Has an engine note the statements that it is asked to run. */
function recordStatements(engine: Engine, statements: Statement[]): Engine {
  const noting =
    (query: RunQuery): RunQuery =>
    (sql, params) => {
      statements.push({ sql, params })
      return query(sql, params)
    }
  const open = engine.open.bind(engine)
  engine.open = async (...args) => {
    const database = await open(...args)
    return {
      ...database,
      query: noting(database.query),
      transaction: (work, onVisible) =>
        database.transaction((executor) => work({ ...executor, query: noting(executor.query) }), onVisible),
    }
  }
  return engine
}

/** Returns the most rows that a step of a plan has read. */
const countRowsRead = (plan: string) =>
  Math.max(
    ...[...plan.matchAll(/actual rows=(\d+)|Rows Removed by Filter: (\d+)/g)].map(([, read, removed]) =>
      Number(read ?? removed),
    ),
  )

describe.skipIf(!databaseUrl)('the statements of a blueprint', () => {
  const statements: Statement[] = []
  const storage = new DatabasePool(recordStatements(postgres(), statements), { openCount: 2, deadline: 5_000 })
  const at = { ...freshLocation(), bucket: 'blueprint_statements' }
  const tenant: Tenant = { tenant: at.tenant, ...storage.getStore(at, tenantMigrations) }
  const actor: Actor = {
    ...{ user: 'admin', roles: [], privileged: true, workspace: null, via: 'api-key', scopes: [] },
  }
  const ctx = { ...tenant, actor }
  afterAll(() => storage.close())

  const createBlueprint = async (key: string) => {
    const fields = [
      { key: 'title', type: 'string' },
      { key: 'code', type: 'string', unique: true },
      { key: 'parent', type: 'relation', target: 'others' },
    ]
    await insert(ctx, { key, name: key, fields: (key === 'others' ? fields.slice(0, 1) : fields) as never })
    return getModel(ctx, key)
  }

  test('PostgreSQL reads no entities of others to create a blueprint, however many there are', async () => {
    const others = await createBlueprint('others')
    const columns = '_id, blueprint, identifier, shown, keys, version, created, updated'
    const rows = Array.from({ length: ENTITIES }, (_, n) => [`${n}`, others.code, `other-${n}`, '{}', '{}', 1, n, n])
    await tenant.write((tx) =>
      tx.executeMany(`insert into entities (${columns}) values (${rows[0]!.map(() => '?').join(', ')})`, rows),
    )
    await queryDatabase(databaseUrl!, 'analyze blueprint_statements.entities')
    statements.length = 0
    const created = await createBlueprint('created')
    expect(await readLastEntityNumber(tenant.db, created.code)).toBe(0)

    const reading = statements.filter(({ sql }) => /^\s*(select|with)\b.*\bentities\b/s.test(sql))
    expect(reading).not.toBeEmpty()
    for (const { sql, params } of reading) {
      const plan = await tenant.db.query(`explain (analyze, timing off, summary off) ${sql}`, params)
      expect({ sql, rows: countRowsRead(plan.flat().join('\n')) <= MAX_ROWS_READ }).toEqual({ sql, rows: true })
    }
  })
})

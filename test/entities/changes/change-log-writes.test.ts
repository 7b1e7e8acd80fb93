import { expect, test } from 'bun:test'
import { Glob } from 'bun'
import { getModel } from '../../../src/blueprints/blueprints'
import type { Model } from '../../../src/blueprints/model'
import { enableLog } from '../../../src/entities/changes/change-log'
import type { ComputedDoc } from '../../../src/entities/store/doc'
import { insertEntity, toEntityDraft } from '../../../src/entities/write/insert'
import type { Tx } from '../../../src/storage/port'
import { createThingsFixture } from '../fixtures'

test('every source file that writes entities appends to the change log', async () => {
  const writing: string[] = []
  for (const file of new Glob('**/*.ts').scanSync('src')) {
    const source = await Bun.file(`src/${file}`).text()
    const writes = source.match(/(insert into|update|delete from) entities\b/g)?.length ?? 0
    // Streams get a reset when entities are altered with their blueprint. These change nothing for them.
    const isUnseen = file === 'entities/history/version-log.ts'
    if (!writes || file.startsWith('entities/alteration/') || isUnseen) continue
    writing.push(file)
    expect(source, `${file} writes entities, so it tells changes/change-log.ts`).toMatch(
      /from '\.\.\/changes\/change-log'/,
    )
  }
  expect(writing.sort()).toEqual([
    'entities/write/deletion.ts',
    'entities/write/insert.ts',
    'entities/write/set-null.ts',
    'entities/write/update.ts',
  ])
})

async function statementsOf(
  write: Parameters<typeof createThingsFixture>[0],
  work: (tx: Tx, model: Model) => Promise<unknown>,
  logged: boolean,
) {
  const { tenant } = await createThingsFixture(write)
  const model = await getModel(tenant, 'things')
  if (logged) await enableLog(tenant, 'things')
  const statements: string[] = []
  await tenant.write(async (tx) => {
    const counting: Tx = {
      ...tx,
      query: (sql, params) => {
        statements.push(sql)
        return tx.query(sql, params)
      },
      executeMany: (sql, rows) => {
        statements.push(...rows.map(() => sql))
        return tx.executeMany(sql, rows)
      },
    }
    await work(counting, model)
  })
  return statements
}

test('a create needs two more statements when the change log of its blueprint is enabled', async () => {
  const fields = [{ key: 'n', type: 'integer', indexed: true }]
  const create = (tx: Tx, model: Model) => {
    const known = { _id: Bun.randomUUIDv7(), identifier: 'a', user: null, workspace: null }
    return insertEntity(tx, model, toEntityDraft(model, known, { n: 1 } as unknown as ComputedDoc, undefined), {
      scopes: new Map(),
      files: new Map(),
    })
  }
  const [unlogged, logged] = [await statementsOf(fields, create, false), await statementsOf(fields, create, true)]
  const writes = (statements: string[]) => statements.filter((sql) => /^\s*(insert|update|delete)/.test(sql))
  // The check of the identifier, the entity, and its index row.
  expect([unlogged.length, writes(unlogged).length]).toEqual([3, 2])
  expect([logged.length, writes(logged).length]).toEqual([5, 4])
})

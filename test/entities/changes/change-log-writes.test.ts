import { expect, test } from 'bun:test'
import { Glob } from 'bun'
import { getModel } from '../../../src/blueprints/blueprints'
import type { Model } from '../../../src/blueprints/model'
import { enableLog } from '../../../src/entities/changes/change-log'
import type { ComputedDoc } from '../../../src/entities/store/doc'
import { insertEntity, toEntityDraft } from '../../../src/entities/write/insert'
import type { Tx } from '../../../src/storage/port'
import { createThingsFixture } from '../fixtures'

test('whoever writes entities is where their changes are kept', async () => {
  const writing: string[] = []
  for (const file of new Glob('**/*.ts').scanSync('src')) {
    const source = await Bun.file(`src/${file}`).text()
    const writes = source.match(/(insert into|update|delete from) entities\b/g)?.length ?? 0
    // Who listens is told to start again when entities are altered with their blueprint.
    if (!writes || file.startsWith('entities/alteration/')) continue
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
  listened: boolean,
) {
  const { tenant } = await createThingsFixture(write)
  const model = await getModel(tenant, 'things')
  if (listened) await enableLog(tenant, 'things')
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

test('a create costs two statements more where somebody listens, and none where nobody does', async () => {
  const fields = [{ key: 'n', type: 'integer' }]
  const create = (tx: Tx, model: Model) => {
    const known = { _id: Bun.randomUUIDv7(), identifier: 'a', user: null, workspace: null }
    return insertEntity(
      tx,
      model,
      toEntityDraft(model, known, { n: 1 } as unknown as ComputedDoc, undefined),
      new Map(),
    )
  }
  const [without, listened] = [await statementsOf(fields, create, false), await statementsOf(fields, create, true)]
  const writes = (asked: string[]) => asked.filter((sql) => /^\s*(insert|update|delete)/.test(sql))
  // The name that nobody else may have, the entity, and its row of the index.
  expect([without.length, writes(without).length]).toEqual([3, 2])
  expect([listened.length, writes(listened).length]).toEqual([5, 4])
})

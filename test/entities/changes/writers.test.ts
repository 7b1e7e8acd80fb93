import { expect, test } from 'bun:test'
import { Glob } from 'bun'
import { modelOf } from '../../../src/blueprints/blueprints'
import type { Model } from '../../../src/blueprints/model'
import { drafted, insert } from '../../../src/entities/adding'
import { listening } from '../../../src/entities/changes/log'
import type { Complete } from '../../../src/entities/document'
import type { Tx } from '../../../src/storage/port'
import { shelf } from '../kit'

test('whoever writes entities is where their changes are kept', async () => {
  const writing: string[] = []
  for (const file of new Glob('**/*.ts').scanSync('src')) {
    const source = await Bun.file(`src/${file}`).text()
    const writes = source.match(/(insert into|update|delete from) entities\b/g)?.length ?? 0
    // Who listens is told to start again when entities are altered with their blueprint.
    if (!writes || file.startsWith('entities/altering/')) continue
    writing.push(file)
    expect(source, `${file} writes entities, so it tells changes/log.ts`).toMatch(/from '\.\/changes\/log'/)
  }
  expect(writing.sort()).toEqual(['entities/adding.ts', 'entities/clearing.ts', 'entities/rows.ts'])
})

async function statementsOf(
  write: Parameters<typeof shelf>[0],
  work: (tx: Tx, model: Model) => Promise<unknown>,
  listened: boolean,
) {
  const { tenant } = await shelf(write)
  const model = await modelOf(tenant, 'things')
  if (listened) await listening(tenant, 'things')
  const asked: string[] = []
  await tenant.write(async (tx) => {
    const counting: Tx = {
      ...tx,
      ask: (sql, params) => {
        asked.push(sql)
        return tx.ask(sql, params)
      },
      each: (sql, rows) => {
        asked.push(...rows.map(() => sql))
        return tx.each(sql, rows)
      },
    }
    await work(counting, model)
  })
  return asked
}

test('a create costs two statements more where somebody listens, and none where nobody does', async () => {
  const fields = [{ key: 'n', type: 'integer' }]
  const create = (tx: Tx, model: Model) => {
    const known = { _id: Bun.randomUUIDv7(), identifier: 'a', user: null, workspace: null }
    return insert(tx, model, drafted(model, known, { n: 1 } as unknown as Complete, undefined), new Map())
  }
  const [without, listened] = [await statementsOf(fields, create, false), await statementsOf(fields, create, true)]
  const writes = (asked: string[]) => asked.filter((sql) => /^\s*(insert|update|delete)/.test(sql))
  // The name that nobody else may have, the entity, and its row of the index.
  expect([without.length, writes(without).length]).toEqual([3, 2])
  expect([listened.length, writes(listened).length]).toEqual([5, 4])
})

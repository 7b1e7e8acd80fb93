import { expect, test } from 'bun:test'
import { tenantMigrations } from '../../migrations'
import { takeNumber } from '../../src/blueprints/number-sequence'
import type { Tx } from '../../src/storage/port'
import { engines, freshFolder } from './engines'

const isOwn = (text: string) => text.includes('the code of their blueprint in the place of its key')
const upto = (list: string[]) => list.slice(0, list.findIndex(isOwn))

test.each(engines)('%s: entities of earlier versions get the code of their blueprint', async (name, make) => {
  const folder = freshFolder()
  const older = { sqlite: upto(tenantMigrations.sqlite), postgres: upto(tenantMigrations.postgres) }
  const places = ['a', 'b'].map((tenant) => ({
    ...{ tenant, file: `${tenant}.db`, identity: crypto.randomUUID(), bucket: 'blueprint_codes' },
  }))
  const before = make({ folder })
  for (const [at, place] of places.entries()) {
    const old = await before.open(place, older)
    await old.transaction(async ({ query }) => {
      const insertBlueprint = `insert into blueprints (key, _id, name, description, definition, version, form, indexing, created,
        updated) values (?, ?, 'Name', '', '{}', 1, 0, 0, ?, 0)`
      // The second tenant has one blueprint less.
      for (const [created, key] of ['notes', 'books', 'drafts'].slice(at).entries())
        await query(insertBlueprint, [key, `_id of ${key}`, created])
      const insertEntity = `insert into entities (seq, _id, blueprint, identifier, "user", shown, keys, version, created,
        updated, form, creator) values (?, ?, ?, ?, 'u', '{"a":1}', '{}', 3, 100, 200, -1, 'c')`
      for (const [n, key] of ['books', 'drafts', 'books'].entries())
        await query(insertEntity, [7 + n, n ? `_id ${n}` : null, key, `${key} ${n}`])
    })
    await old.close()
  }
  await before.close()

  const engine = make({ folder })
  for (const [at, place] of places.entries()) {
    const { query, transaction, close } = await engine.open(place, tenantMigrations)
    // No row of PostgreSQL is written: its tenants share their tables.
    const toCode = (key: string, number: number) => (name === 'PostgreSQL' ? key : `${number - at}`)
    const [books, drafts] = [toCode('books', 2), toCode('drafts', 3)]
    expect(await query('select key, code from blueprints order by created')).toEqual([
      ...(at ? [] : [['notes', toCode('notes', 1)]]),
      ['books', books],
      ['drafts', drafts],
    ])
    const columns = 'seq, _id, blueprint, identifier, "user", workspace, shown, keys, version, created, updated'
    const rest = ['u', null, '{"a":1}', '{}', 3, 100, 200, null, -1, null, 'c']
    expect(await query(`select ${columns}, altered, form, history, creator from entities order by seq`)).toEqual([
      [7, null, books, 'books 0', ...rest],
      [8, '_id 1', drafts, 'drafts 1', ...rest],
      [9, '_id 2', books, 'books 2', ...rest],
    ])
    await transaction(async (executor) => {
      const next = name === 'PostgreSQL' ? 1 : 4 - at
      expect(await takeNumber(executor as unknown as Tx, 'blueprint codes')).toBe(next)
    })
    await close()
  }
  await engine.close()
})

import { expect, test } from 'bun:test'
import { tenantMigrations } from '../../migrations'
import { engines, freshFolder } from './engines'

const definition = {
  fields: [
    { key: 'cover', type: 'file' },
    { key: 'papers', type: 'file', multi: true },
    { key: 'filtered', type: 'file' },
    { key: 'plain', type: 'file', indexed: false },
    { key: 'made', type: 'file' },
    { key: 'title', type: 'string' },
  ],
  computed: { made: 'title' },
}
const INDEXES: Record<string, string> = { papers: 'list or object', filtered: 'filter', title: 'sort' }

test.each(engines)('%s: file fields of earlier versions get an index, and earlier files are kept', async (_, make) => {
  const folder = freshFolder()
  const place = { tenant: 'a', file: 'a.db', identity: crypto.randomUUID(), bucket: 'file_fields' }
  const isOwn = (text: string) => text.includes('Fields of the type `file` are indexed')
  const older = {
    sqlite: tenantMigrations.sqlite.slice(0, tenantMigrations.sqlite.findIndex(isOwn)),
    postgres: tenantMigrations.postgres.slice(0, tenantMigrations.postgres.findIndex(isOwn)),
  }
  const before = make({ folder })
  const old = await before.open(place, older)
  await old.transaction(async ({ query }) => {
    const columns = '(key, _id, name, description, definition, version, form, indexing, created, updated)'
    const insert = `insert into blueprints ${columns} values (?, ?, 'Name', '', ?, 1, 0, 0, 0, 0)`
    await query(insert, ['pages', 'b1', JSON.stringify(definition)])
    await query(insert, ['notes', 'b2', JSON.stringify({ fields: [{ key: 'text', type: 'string' }] })])
    for (const [n, { key }] of definition.fields.entries()) {
      await query('insert into fields (number, blueprint, key) values (?, ?, ?)', [n + 1, 'pages', key])
      const index = `insert into field_indexes (blueprint, number, state, reason, since, used, done, upto)
        values ('pages', ?, ?, ?, 0, 0, 0, 0)`
      const state = key === 'filtered' ? 'retiring' : 'ready'
      if (INDEXES[key]) await query(index, [n + 1, state, INDEXES[key]])
    }
    await query("insert into file_contents (sha256, size, claimed, removing) values ('h', 1, 0, 0)")
    await query(`insert into files (_id, name, type, size, sha256, owner, created)
      values ('f', 'a.txt', 'text/plain', 1, 'h', 'u', 0)`)
  })
  await old.close()
  await before.close()
  const engine = make({ folder })
  const { query, close } = await engine.open(place, tenantMigrations)
  expect(
    await query(`select f.key, i.state, i.reason from field_indexes i join fields f on f.number = i.number
      order by f.number`),
  ).toEqual([
    ['cover', 'building', 'file'],
    ['papers', 'ready', 'file'],
    ['filtered', 'building', 'file'],
    ['title', 'ready', 'sort'],
  ])
  expect(await query('select key, indexing from blueprints order by key')).toEqual([
    ['notes', 0],
    ['pages', 1],
  ])
  expect(await query('select keep, unused from files')).toEqual([[1, null]])
  await close()
  await engine.close()
})

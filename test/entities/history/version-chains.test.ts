import { expect, test } from 'bun:test'
import { tenantMigrations } from '../../../migrations'
import { engines, freshFolder } from '../../storage/engines'

const isOwn = (text: string) => text.includes('Versions are appended under growing numbers')
const upto = (list: string[]) => list.slice(0, list.findIndex(isOwn))

/** Rows as they were stored before: history, identifier, number, time, author, action and former values. */
const VERSIONS = [
  [1, 'a', 1, 100, 'u1', 1, null],
  [1, 'a', 2, 300, 'u2', 0, '{"1":"one"}'],
  [1, 'a', 3, 250, 'u2', 0, '{"1":"two"}'],
  [1, 'b', 7, 200, null, 0, null],
  [1, 'b', 8, 210, 'u1', 0, '{"1":"x"}'],
  [1, 'gone', 1, 120, 'u1', 1, null],
  [1, 'gone', 2, 400, 'u1', 2, '{"1":"y","c":120}'],
  [1, 'back', 1, 130, 'u1', 1, null],
  [1, 'back', 2, 140, 'u1', 2, '{"1":"z","c":130}'],
  [1, 'back', 3, 500, 'u2', 1, null],
  [9, 'a', 1, 50, 'u1', 1, null],
]

test.each(engines)('%s: versions of earlier releases become chains that their entities begin', async (_, make) => {
  const folder = freshFolder()
  const place = { tenant: 'a', file: 'a.db', identity: crypto.randomUUID(), bucket: 'version_chains' }
  const older = { sqlite: upto(tenantMigrations.sqlite), postgres: upto(tenantMigrations.postgres) }
  const before = make({ folder })
  const old = await before.open(place, older)
  await old.transaction(async ({ query }) => {
    const insertBlueprint = `insert into blueprints (key, _id, name, description, definition, version, form, indexing, created,
      updated, history_number) values (?, ?, 'Name', '', '{}', 1, 0, 0, 0, 0, ?)`
    await query(insertBlueprint, ['things', 'b1', 1])
    await query(insertBlueprint, ['others', 'b2', null])
    const insertEntity = `insert into entities (_id, blueprint, identifier, shown, keys, version, created, updated)
      values (?, ?, ?, '{}', '{}', 1, 100, 100)`
    for (const [blueprint, identifier] of ['a', 'b', 'back', 'untouched'].map((one) => ['things', one]))
      await query(insertEntity, [`${blueprint}-${identifier}`, blueprint, identifier])
    await query(insertEntity, ['others-a', 'others', 'a'])
    const insertVersion = `insert into entity_versions (history, identifier, number, at, author, action, former)
      values (?, ?, ?, ?, ?, ?, ?)`
    for (const version of VERSIONS) await query(insertVersion, version)
  })
  await old.close()
  await before.close()

  const engine = make({ folder })
  const { query, transaction, close } = await engine.open(place, tenantMigrations)
  const versions = await query(`select v.history, v.identifier, v.number, v.at, v.author, v.action, v.former,
      v.since, p.number, case when p.seq is null or (p.identifier = v.identifier and p.seq < v.seq) then 1 else 0 end
    from entity_versions v left join entity_versions p on p.seq = v.previous order by v.history, v.identifier, v.number`)
  const since = [100, 100, 300, 200, 200, 130, 130, 500, 120, 120, 50]
  const previous = [null, 1, 2, null, 7, null, 1, 2, null, 1, null]
  expect(versions).toEqual(
    VERSIONS.toSorted((one, other) => (`${one.slice(0, 2)}` < `${other.slice(0, 2)}` ? -1 : 1)).map((version, n) => [
      ...[...version, since[n], previous[n], 1],
    ]),
  )
  expect(
    await query(`select b.key, e.identifier, e.history, e.version_number, v.number, v.identifier, e.creator
      from entities e join blueprints b on b.code = e.blueprint left join entity_versions v on v.seq = e.version_row
      order by b.key, e.identifier`),
  ).toEqual([
    ['others', 'a', null, null, null, null, null],
    ['things', 'a', 1, 3, 3, 'a', null],
    ['things', 'b', 1, 8, 8, 'b', null],
    ['things', 'back', 1, 3, 3, 'back', null],
    ['things', 'untouched', null, null, null, null, null],
  ])
  const order = await query('select at from entity_versions order by seq')
  expect(order.flat()).toEqual([50, 100, 120, 130, 140, 200, 210, 300, 250, 400, 500])
  await transaction(async ({ query }) => {
    await query(
      `insert into entity_versions (history, identifier, number, at, since, action) values (1, 'new', 2, 1, 1, 0)`,
    )
  })
  expect(await query('select identifier from entity_versions order by seq desc limit 1')).toEqual([['new']])
  await close()
  await engine.close()
})

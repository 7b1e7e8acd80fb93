import { expect, test } from 'bun:test'
import { undoAllAbandonedImports } from '../../../src/entities/transfer/undo-journal'
import { resolveTenant } from '../../../src/tenancy/tenants'
import { statusAndCode } from '../../test-tenant'
import { createBlueprintsFixture, identifiers } from '../fixtures'
import { createImportFixture, exportByIdentifier, importBody, toNdjson } from './import-fixtures'

type ImportFixture = Pick<Awaited<ReturnType<typeof createImportFixture>>, 'tenant' | 'origin' | 'path' | 'tokens'>

const repeat = <T>(count: number, make: (n: number) => T) => Array.from({ length: count }, (_, n) => make(n))

/** Starts an atomic import that has stored these lines, and returns a function that breaks it off. */
async function startHalfImport(own: ImportFixture, lines: object[]) {
  let sender: ReadableStreamDefaultController<Uint8Array>
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      sender = controller
    },
  })
  const answer = importBody(own)(stream, 'format=ndjson&mode=upsert&atomic=true')
  sender!.enqueue(Buffer.from(toNdjson(lines)))
  const countUndoRows = async () => Number((await own.tenant.db.query('select count(*) from import_undo'))[0]![0])
  const made = new Set(lines.map((line) => (line as { identifier?: string }).identifier ?? line)).size
  // Lines are stored in groups, so more of them follow until all of these are stored.
  for (; (await countUndoRows()) < made; await Bun.sleep(5))
    sender!.enqueue(Buffer.from(toNdjson(repeat(20, () => ({})))))
  return async () => {
    sender.error(new Error('gone'))
    return statusAndCode(await answer)
  }
}

const expectNoImportRows = async ({ tenant: { db } }: ImportFixture) => {
  for (const table of ['imports', 'import_undo']) expect(await db.query(`select * from ${table}`)).toEqual([])
}

test('an undone import keeps entities that were created meanwhile, even if they reuse row numbers of the import', async () => {
  const own = await createImportFixture()
  const user = own.as('user')
  await user.post(own.path, { identifier: 'old', title: 'before' })
  const made = repeat(99, (n) => ({ identifier: `i${n}`, title: 'x' }))
  const breakOff = await startHalfImport(own, [{ identifier: 'old', title: 'after' }, ...made])
  for (const name of ['i98', 'i97']) expect((await user.delete(`${own.path}/${name}`)).status).toBe(200)
  for (const name of ['mine', 'own']) await user.post(own.path, { identifier: name, title: 'of somebody else' })
  expect(await breakOff()).toEqual([400, 'MALFORMED_BODY'])
  expect(await exportByIdentifier(user, own.path)).toEqual({
    old: { title: 'before' },
    mine: { title: 'of somebody else' },
    own: { title: 'of somebody else' },
  })
  await expectNoImportRows(own)
})

test('an atomic import may change an entity several times, and restores it when it fails', async () => {
  const own = await createImportFixture()
  const user = own.as('user')
  const before = { old: { title: 'before' }, other: { title: 'too' } }
  for (const [identifier, { title }] of Object.entries(before)) await user.post(own.path, { identifier, title })
  const lines = [
    ...[{ title: 'first' }, { stock: 1 }, { title: 'last' }].map((more) => ({ identifier: 'old', ...more })),
    ...[{ title: 'new' }, { stock: 2 }, { stock: 3 }].map((more) => ({ identifier: 'made', ...more })),
    ...[{ title: 'a' }, { title: 'b' }].map((more) => ({ identifier: 'other', ...more })),
  ]
  const upsert = (entries: object[]) => importBody(own)(toNdjson(entries), 'format=ndjson&mode=upsert&atomic=true')
  expect((await upsert([...lines, { title: 5 }])).body).toMatchObject({ imported: 0, failed: 1 })
  expect(await exportByIdentifier(user, own.path)).toEqual(before)
  expect((await upsert(lines)).body).toEqual({ imported: lines.length, failed: 0, errors: [] })
  expect(await exportByIdentifier(user, own.path)).toEqual({
    old: { title: 'last', stock: 1 },
    made: { title: 'new', stock: 3 },
    other: { title: 'b' },
  })
  await expectNoImportRows(own)
})

test('an import is undone even while the database is busy', async () => {
  const own = await createImportFixture()
  const breakOff = await startHalfImport(
    own,
    repeat(100, () => ({ title: 'x' })),
  )
  const blocker = Promise.withResolvers<void>()
  const { write } = await resolveTenant(new Request(own.origin, { headers: { host: new URL(own.origin).host } }))
  const blocked = repeat(1_000, (n) => write(async (tx) => (n ? tx.query('select 1') : blocker.promise)))
  const settled = Promise.allSettled(blocked)
  const answer = breakOff()
  setTimeout(blocker.resolve, 300)
  expect(await answer).toEqual([400, 'MALFORMED_BODY'])
  await settled
  expect(await own.rows('entities')).toBe(0)
  await expectNoImportRows(own)
})

test('an undone import clears or deletes what was created meanwhile with references to its entities', async () => {
  const parts = (onDelete: string, more = {}) => ({
    key: onDelete,
    type: 'relation',
    target: 'things',
    onDelete,
    ...more,
  })
  const own = await createBlueprintsFixture(
    { key: 'things', fields: [{ key: 'part', type: 'relation', target: 'things', onDelete: 'cascade' }] },
    { key: 'notes', fields: [parts('restrict'), parts('nullify', { multi: true }), parts('cascade')] },
  )
  const at = { ...own, path: own.at('things') }
  const { user } = own
  await user.post(own.at('things'), { identifier: 'old' })
  const made = repeat(100, (n) => ({ identifier: `i${n}`, ...(n && { part: `i${n - 1}` }) }))
  const breakOff = await startHalfImport(at, [
    ...made,
    { identifier: 'old', part: 'i50' },
    ...repeat(99, (n) => ({ identifier: `j${n}` })),
  ])
  await user.post(own.at('notes'), { identifier: 'kept', restrict: 'i5', nullify: ['i7', 'old', 'j3'] })
  await user.post(own.at('notes'), { identifier: 'gone', cascade: 'i9' })
  expect(await breakOff()).toEqual([400, 'MALFORMED_BODY'])
  expect(await exportByIdentifier(user, own.at('things'))).toEqual({ old: {} })
  expect(await exportByIdentifier(user, own.at('notes'))).toEqual({ kept: { nullify: ['old'] } })
  expect(identifiers((await user.get(own.at('notes', '?restrict=i5'))).body)).toEqual([])
  expect(identifiers((await user.get(own.at('notes', '?nullify=old'))).body)).toEqual(['kept'])
  await expectNoImportRows(at)
})

test('an abandoned import is undone even if its blueprint is not used', async () => {
  const own = await createImportFixture()
  const user = own.as('user')
  await user.post(own.path, { identifier: 'old', title: 'before' })
  const breakOff = await startHalfImport(
    own,
    repeat(300, (n) => ({ identifier: n ? `i${n}` : 'old', title: 'x' })),
  )
  await own.tenant.write((tx) => tx.query('update imports set _id = ?, busy = 1', ['of a process that is gone']))
  await own.tenant.write((tx) => tx.query('update import_undo set import = ?', ['of a process that is gone']))
  await undoAllAbandonedImports({ ...own.tenant, tenant: own.id } as never)
  expect(await exportByIdentifier(user, own.path)).toEqual({ old: { title: 'before' } })
  await expectNoImportRows(own)
  expect(await breakOff()).toEqual([400, 'MALFORMED_BODY'])
})

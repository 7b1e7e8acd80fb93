import { describe, expect, test } from 'bun:test'
import { statusAndCode } from '../../test-tenant'
import {
  createImportFixture,
  exportByIdentifier,
  exportText,
  importBody,
  refusedOperation,
  toNdjson,
} from './import-fixtures'

const create = (identifier: string, parent?: string, more: object = {}) => ({
  op: 'create',
  data: { identifier, ...(parent && { parent }), ...more },
})

describe('references among the entities of a batch or an import', () => {
  test('operations of a batch may refer to entities that later ones create, and to each other', async () => {
    const own = await createImportFixture()
    const user = own.as('user')
    const operations = [
      create('child', 'root'),
      create('a', 'b'),
      create('b', 'a'),
      create('self', 'self'),
      create('root'),
    ]
    expect((await user.post(`${own.path}/batch`, { operations })).status).toBe(200)
    const upserts = [
      { op: 'update', identifier: 'root', data: { parent: 'new' } },
      { op: 'upsert', identifier: 'new', data: { title: 'x' } },
    ]
    expect((await user.post(`${own.path}/batch`, { operations: upserts })).status).toBe(200)
    expect(await exportByIdentifier(user, own.path)).toMatchObject({
      child: { parent: 'root' },
      root: { parent: 'new' },
    })
    const missing = await user.post(`${own.path}/batch`, {
      operations: [create('x', 'y'), create('z', 'nobody'), create('y')],
    })
    expect([...statusAndCode(missing), refusedOperation(missing)]).toEqual([400, 'INVALID_INPUT', 1])
    const removed = await user.post(`${own.path}/batch`, {
      operations: [create('x', 'y'), create('y'), { op: 'delete', identifier: 'y' }],
    })
    expect([...statusAndCode(removed), refusedOperation(removed)]).toEqual([409, 'ENTITY_IN_USE', 2])
    expect((await user.get(`${own.path}/z`)).status).toBe(404)
  })

  test.each(['', '&atomic=true'])(
    'an import takes a tree in any order, however far apart its lines are (%p)',
    async (query) => {
      const own = await createImportFixture()
      const count = 900
      // Each entity has a parent that comes hundreds of lines later, and the root is the last one.
      const lines = Array.from({ length: count }, (_, n) => ({
        identifier: `i${n}`,
        ...(n < count - 1 && { parent: `i${n % 3 ? count - 1 : Math.min(count - 1, n + 350)}` }),
      }))
      const { body } = await importBody(own)(toNdjson(lines), `format=ndjson${query}`)
      expect(body).toEqual({ imported: count, failed: 0, errors: [] })
      const stored = await exportByIdentifier(own.as('user'), own.path)
      for (const { identifier, parent } of lines) expect(stored[identifier]).toEqual(parent ? { parent } : {})
    },
  )

  test.each(['ndjson', 'csv'])(
    'a tree whose children are older than their parents is the same after its export and import, as %s',
    async (format) => {
      const [from, to] = [await createImportFixture(), await createImportFixture()]
      const user = from.as('user')
      const count = 600
      // The oldest is the deepest leaf, because each gets its parent after that was created.
      const operations = Array.from({ length: count }, (_, n) => create(`i${n}`, undefined, { title: `t${n}` }))
      expect((await user.post(`${from.path}/batch`, { operations })).status).toBe(200)
      const moves = Array.from({ length: count - 1 }, (_, n) => ({
        ...{ op: 'update', identifier: `i${n}`, data: { parent: `i${Math.min(count - 1, 2 * n + 1)}` } },
      }))
      expect((await user.post(`${from.path}/batch`, { operations: moves })).status).toBe(200)
      const text = await exportText(user, from.path, `format=${format}`)
      const { body } = await importBody(to)(text, `format=${format}`)
      expect(body).toMatchObject({ imported: count, failed: 0, errors: [] })
      const [before, after] = [
        await exportByIdentifier(user, from.path),
        await exportByIdentifier(to.as('user'), to.path),
      ]
      expect(Object.keys(before)).toHaveLength(count)
      expect(after).toEqual(before)
    },
  )

  test('an import takes a chain of 6,000 lines that each refer to the next one', async () => {
    const own = await createImportFixture()
    const count = 6_000
    const lines = Array.from({ length: count }, (_, n) => ({
      identifier: `i${n}`,
      ...(n < count - 1 && { parent: `i${n + 1}` }),
    }))
    expect((await importBody(own)(toNdjson(lines))).body).toEqual({ imported: count, failed: 0, errors: [] })
    const broken = lines.map((line) => ({ ...line, identifier: `b${line.identifier}`, parent: `b${line.parent}` }))
    for (const query of ['format=ndjson&dryRun=true', 'format=ndjson']) {
      const { body } = await importBody(own)(toNdjson(broken), query)
      expect([body.imported, body.failed, body.errors.length]).toEqual([0, count, 1_000])
    }
  })

  test('a dry run refuses the lines whose references an import would refuse', async () => {
    const own = await createImportFixture()
    const user = own.as('user')
    await user.post(own.path, { identifier: 'stored' })
    const lines = [
      { identifier: 'a', parent: 'stored' },
      { identifier: 'c', parent: 'later' },
      { identifier: 'd', parent: 'bad' },
      { identifier: 'e', parent: 'd' },
      { identifier: 'bad', stock: 'x' },
      { identifier: 'f', parent: 'g' },
      { identifier: 'g', parent: 'f' },
      { identifier: 'later' },
      { identifier: 'h', parent: 'nobody' },
    ]
    const [dry, real] = [
      (await importBody(own)(toNdjson(lines), 'format=ndjson&dryRun=true')).body,
      (await importBody(own)(toNdjson(lines))).body,
    ]
    expect(dry).toEqual(real)
    expect(real.errors.map(({ line }: { line: number }) => line)).toEqual([3, 4, 5, 9])
  })

  test('a line that names a refused or missing one is refused, and so are those that name it', async () => {
    const own = await createImportFixture()
    const far = Array.from({ length: 150 }, (_, n) => ({ identifier: `far${n}` }))
    const lines = [
      { identifier: 'a', parent: 'bad' },
      { identifier: 'b', parent: 'a' },
      { identifier: 'c', parent: 'nobody' },
      { identifier: 'd', parent: 'e' },
      ...far,
      { identifier: 'e', parent: 'd' },
      { identifier: 'bad', stock: 'x' },
      { identifier: 'f', parent: 'b' },
    ]
    const { body } = await importBody(own)(toNdjson(lines))
    expect([body.imported, body.failed]).toEqual([152, 5])
    expect(body.errors.map(({ line }: { line: number }) => line)).toEqual([1, 2, 3, 156, 157])
    expect(body.errors[0].message).toBe('There is no entity "bad" of "things".')
    const stored = await exportByIdentifier(own.as('user'), own.path)
    expect([stored.d, stored.e, stored.a]).toEqual([{ parent: 'e' }, { parent: 'd' }, undefined])
    const again = await importBody(own)(
      toNdjson([{ identifier: 'far0', parent: 'late' }, { identifier: 'far0', title: 'x' }, { identifier: 'late' }]),
      'format=ndjson&mode=upsert',
    )
    expect(again.body).toMatchObject({ imported: 3, failed: 0 })
    expect((await exportByIdentifier(own.as('user'), own.path)).far0).toEqual({ parent: 'late', title: 'x' })
    const atomic = await importBody(own)(
      toNdjson([
        { identifier: 'x', parent: 'nobody' },
        { identifier: 'y', parent: 'x' },
      ]),
      'format=ndjson&atomic=true',
    )
    expect(atomic.body).toMatchObject({ imported: 0, failed: 2 })
  })
})

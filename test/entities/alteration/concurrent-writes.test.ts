import { expect, setDefaultTimeout, test } from 'bun:test'
import { PROCESS_ID } from '../../../src/core/process-id'
import { statusAndCode } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { createThingsFixture, type Entity, identifiers, recordStatements } from '../fixtures'
import { alterByHand, waitUntilSettled } from './steps'

setDefaultTimeout(60_000)

const BLUEPRINT_PATH = '/blueprints/things'
const title = { key: 'title', type: 'string', indexed: true }
const count = { key: 'count', type: 'integer', indexed: true }

async function createFilledFixture(fields: object[], many: number, doc: (n: number) => object) {
  const own = await createThingsFixture(fields)
  const admin = own.as('admin')
  for (let start = 0; start < many; start += 500) {
    const operations = Array.from({ length: Math.min(500, many - start) }, (_, n) => ({
      op: 'create',
      identifier: `i${start + n}`,
      data: doc(start + n),
    }))
    expect((await admin.post(`${own.path}/batch`, { operations })).status).toBe(200)
  }
  const found = async (query: string) => identifiers((await admin.get(`${own.path}?$sort=identifier&${query}`)).body)
  return { ...own, admin, found }
}

test('entities that are written during an alteration are stored, altered and found like all others', async () => {
  const { admin, path } = await createFilledFixture([title, count], 2_500, (n) => ({ title: `t${n}`, count: n % 7 }))
  const state = { over: false }
  const change = admin
    .put(BLUEPRINT_PATH, {
      fields: [
        { ...title, key: 'name', renamedFrom: 'title' },
        { ...count, type: 'number' },
        { key: 'new', type: 'string', required: true, default: 'x' },
      ],
    })
    .finally(() => {
      state.over = true
    })
  const written = new Map<string, number>()
  const wrong: unknown[] = []
  const writer = async (lane: number) => {
    for (let n = 0; !state.over || n < 10; n++) {
      const [identifier, size] = [n % 3 ? `w${lane}-${n}` : `i${lane * 50 + n}`, 1_000 * (lane + 1) + n]
      const { status } =
        n % 3
          ? await admin.post(path, { identifier, count: size })
          : await admin.put(`${path}/${identifier}`, { count: size })
      if (status !== (n % 3 ? 201 : 200)) wrong.push(status)
      written.set(identifier, size)
      const { body } = await admin.get(`${path}?count=${size}`)
      if (identifiers(body).join() !== identifier) wrong.push([identifier, size, body])
    }
  }
  await Promise.all([0, 1, 2, 3, 4].map(writer))
  expect([(await change).status, wrong]).toEqual([200, []])
  const check = async () => {
    const all = (await admin.get(`${path}?count[$gte]=1000&$limit=1000`)).body as Entity[]
    expect(new Map(all.map(({ identifier, metadata }) => [identifier, metadata.count as number]))).toEqual(written)
    expect(all.every(({ metadata }) => metadata.new === 'x')).toBeTrue()
    expect((await admin.get(`${BLUEPRINT_PATH}/charts/count?new=x`)).body.count).toBe(
      2_500 + [...written.keys()].filter((one) => one.startsWith('w')).length,
    )
  }
  await check()
  expect(await waitUntilSettled(admin)).toBeUndefined()
  await check()
})

test('concurrent writes cannot create duplicates in a field that becomes unique', async () => {
  const { id, admin, path, found } = await createFilledFixture([title], 20, (n) => ({ title: `t${n}` }))
  await alterByHand(id, async ({ begin, step, isPreparing }) => {
    const { answer } = await begin(admin, { fields: [{ ...title, unique: true }] })
    await step(5)
    // Some entities are prepared and some are not: the field is not unique yet for either.
    expect((await admin.post(path, { identifier: 'twin', title: 't1' })).status).toBe(201)
    while (await isPreparing()) await step(5)
    const refused = await answer
    expect([...statusAndCode(refused), refused.body.details[0].examples]).toEqual([409, 'DUPLICATE_VALUES', ['twin']])
    expect((await admin.get(BLUEPRINT_PATH)).body.alteration).toMatchObject({
      state: 'cleaning',
      problem: { code: 'DUPLICATE_VALUES' },
    })
    expect(await found('title=t1')).toEqual(['i1', 'twin'])
  })
  expect((await waitUntilSettled(admin))?.state).toBe('failed')
  expect((await admin.get(BLUEPRINT_PATH)).body.fields[0].unique).toBeUndefined()
  expect((await admin.delete(`${path}/twin`)).status).toBe(200)
  const change = admin.put(BLUEPRINT_PATH, { fields: [{ ...title, unique: true }] })
  const made = Array.from({ length: 40 }, () => admin.post(path, { title: 'same' }))
  const statuses = (await Promise.all(made)).map(({ status }) => status)
  const { status } = await change
  const there = (await found('title=same')).length
  expect(there).toBe(statuses.filter((one) => one === 201).length)
  expect(status).toBe(there === 1 ? 200 : 409)
})

test('a write that is invalid under the new fields is rejected with 400 as soon as their alteration has begun', async () => {
  const { id, admin, path, as } = await createFilledFixture([title, { ...count, readRoles: ['boss'] }], 3, () => ({
    title: 'x',
    count: 1,
  }))
  await alterByHand(id, async ({ begin, step }) => {
    const { answer } = await begin(admin, {
      fields: [
        { ...title, max: 3 },
        { ...count, max: 3, readRoles: ['boss'] },
      ],
    })
    const refused = await admin.post(path, { title: 'long' })
    expect(statusAndCode(refused)).toEqual([400, 'INVALID_INPUT'])
    expect(refused.body.message).toContain('A schema change is in progress.')
    const hidden = await as('user').put(`${path}/i0`, { count: 4 })
    expect([...statusAndCode(hidden), hidden.body.message.includes('count')]).toEqual([400, 'INVALID_INPUT', false])
    expect((await admin.put(`${path}/i0`, { title: 'abc' })).status).toBe(200)
    while (await step(2));
    expect((await answer).status).toBe(200)
  })
})

test('a second alteration waits for the first, while permissions change at once and are kept', async () => {
  const { id, admin, as, path } = await createFilledFixture([title, count], 10, (n) => ({ title: 'x', count: n }))
  await alterByHand(id, async ({ begin, step, isPreparing }) => {
    const { answer } = await begin(admin, { name: 'Renamed', fields: [count] })
    expect((await admin.get(BLUEPRINT_PATH)).body).toMatchObject({
      name: 'Things',
      fields: [{ key: 'title' }, { key: 'count' }],
      alteration: { state: 'preparing', done: 0, total: 10 },
    })
    expect((await as('user').get(BLUEPRINT_PATH)).body.alteration).toBeUndefined()
    const secondChange = admin.put(BLUEPRINT_PATH, { fields: [{ ...count, key: 'number', renamedFrom: 'count' }] })
    expect((await admin.put(BLUEPRINT_PATH, { permissions: [] })).status).toBe(200)
    expect(statusAndCode(await as('user').get(path))).toEqual([403, 'FORBIDDEN'])
    await step(4)
    expect((await admin.get(BLUEPRINT_PATH)).body.alteration).toMatchObject({ done: 4 })
    while (await isPreparing()) await step(4)
    expect((await answer).body).toMatchObject({ name: 'Renamed', permissions: [] })
    // The second change starts here, even if the cleanup of the first is not done.
    while (!(await isPreparing())) await Bun.sleep(1)
    while (await isPreparing()) await step(4)
    expect((await secondChange).body).toMatchObject({ name: 'Renamed', permissions: [], fields: [{ key: 'number' }] })
  })
  expect(await waitUntilSettled(admin)).toBeUndefined()
  expect((await admin.get(`${path}/i3`)).body.metadata).toEqual({ number: 3 })
})

test('an atomic import makes an alteration fail with 409 IMPORT_RUNNING, and waits for a running alteration', async () => {
  const { id, admin, tenant, path } = await createFilledFixture([title], 3, () => ({ title: 'x' }))
  // An import of a process that is not alive would be undone.
  const importId = `${PROCESS_ID} import`
  await tenant.write((tx) =>
    tx.query("insert into imports (_id, blueprint, busy) values (?, 'things', 9999999999999)", [importId]),
  )
  expect(
    statusAndCode(await admin.put(BLUEPRINT_PATH, { fields: [{ ...title, key: 'name', renamedFrom: 'title' }] })),
  ).toEqual([409, 'IMPORT_RUNNING'])
  await tenant.write((tx) => tx.query('delete from imports'))
  const send = () =>
    admin
      .with({ 'content-type': 'application/x-ndjson' })
      .post(`${path}/import?atomic=true`, { identifier: 'new', name: 'y' })
  await alterByHand(id, async ({ begin, step }) => {
    const { answer } = await begin(admin, { fields: [{ ...title, key: 'name', renamedFrom: 'title' }] })
    const importing = send()
    while (await step(2));
    expect((await answer).status).toBe(200)
    expect((await importing).body).toMatchObject({ imported: 1, failed: 0 })
  })
})

test('a blueprint that is deleted during an alteration leaves no entities, and the alteration gets 404', async () => {
  const { id, admin, rows } = await createFilledFixture([title, count], 10, (n) => ({ title: 'x', count: n }))
  const answer = await alterByHand(id, async ({ begin, step }) => {
    const { answer } = await begin(admin, { fields: [{ ...count, type: 'number', unique: true }] })
    await step(4)
    expect((await admin.delete(`${BLUEPRINT_PATH}?force=true`)).status).toBe(200)
    return { answer }
  })
  expect(statusAndCode(await answer.answer)).toEqual([404, 'BLUEPRINT_NOT_FOUND'])
  expect([await rows('entities'), await rows('entity_index')]).toEqual([0, 0])
  expect((await admin.post('/blueprints', { key: 'things', name: 'New', fields: [title] })).status).toBe(201)
  expect((await admin.get(`${BLUEPRINT_PATH}/entities?title=x`)).body).toEqual([])
})

test('onDelete nullify of a relation works for entities before and after their own alteration', async () => {
  const of = { key: 'of', type: 'relation', target: 'things', onDelete: 'nullify' }
  const { id, admin, path, found, rows } = await createFilledFixture([of, title], 12, (n) => ({
    title: 'x',
    ...(n > 5 && { of: `i${n - 6}` }),
  }))
  const shown = async (identifier: string) => (await admin.get(`${path}/${identifier}?$populate=true`)).body
  const change = { fields: [{ ...of, key: 'parents', renamedFrom: 'of', multi: true }, title] }
  await alterByHand(id, async ({ begin, step, isPreparing }) => {
    const { answer } = await begin(admin, change)
    await step(9)
    // One of the two is prepared, the other is not.
    for (const gone of ['i1', 'i4']) expect((await admin.delete(`${path}/${gone}`)).status).toBe(200)
    expect([await found('of=i1'), (await shown('i7')).of, (await shown('i6')).of.identifier]).toEqual([
      [],
      undefined,
      'i0',
    ])
    while (await isPreparing()) await step(9)
    expect((await answer).status).toBe(200)
    expect([(await shown('i7')).metadata, (await shown('i10')).metadata]).toEqual([{ title: 'x' }, { title: 'x' }])
    expect((await shown('i6')).parents[0].identifier).toBe('i0')
    const outer = await admin.get(`${path}/i0?$outerPopulate=children:things:tenant`)
    expect(outer.body.children.map(({ identifier, parents }: Entity) => [identifier, parents])).toEqual([
      ['i6', ['i0']],
    ])
    await step(7)
    for (const gone of ['i0', 'i5']) expect((await admin.delete(`${path}/${gone}`)).status).toBe(200)
    expect([(await shown('i6')).metadata, (await shown('i11')).metadata]).toEqual([
      { title: 'x', parents: [] },
      { title: 'x', parents: [] },
    ])
    expect(await found('parents[$in]=i0,i1,i4,i5')).toEqual([])
    while (await step(5));
    expect([await found('parents=i2'), await found('parents=i3')]).toEqual([['i8'], ['i9']])
    expect(await rows('entity_index')).toBe(10)
  })
})

test('the first full-text search during an alteration finds the entities by the fields in force', async () => {
  const { id, admin, found } = await createFilledFixture([{ key: 'size', type: 'file' }, title], 9, (n) => ({
    title: `word${n}`,
    size: `/number${n}`,
  }))
  await alterByHand(id, async ({ begin, step, isPreparing }) => {
    const { answer } = await begin(admin, { fields: [{ key: 'size', type: 'text' }, title] })
    await step(5)
    expect([await found('$q=word3'), await found('$q=number3')]).toEqual([['i3'], []])
    while (await isPreparing()) await step(5)
    expect((await answer).status).toBe(200)
    expect([await found('$q=word3'), await found('$q=number3'), await found('$q=number8')]).toEqual([
      ['i3'],
      ['i3'],
      ['i8'],
    ])
  })
})

test('reads send the same statements to the database before and after an alteration', async () => {
  const { admin, path, origin } = await createFilledFixture([title, count], 5, (n) => ({ title: 'x', count: n }))
  const reads = () => admin.get(`${path}/i1`).then(() => admin.get(`${path}?count=1`))
  const recordReads = async () => {
    await reads()
    return recordStatements(origin, reads)
  }
  // Entities of lists are cached from soon on.
  const isCached = (statements: string[]) => !statements.some((sql) => sql.includes('e.shown'))
  const before = await waitUntil(recordReads, isCached)
  expect(
    (
      await admin.put(BLUEPRINT_PATH, {
        fields: [title, { ...count, key: 'number', renamedFrom: 'count' }, { ...count, type: 'number' }],
      })
    ).status,
  ).toBe(200)
  await waitUntilSettled(admin)
  // The end of the alteration looks for interrupted imports once more.
  const after = await waitUntil(
    recordReads,
    (statements) => statements.length === before.length && isCached(statements),
  )
  expect(after).toEqual(before)
})

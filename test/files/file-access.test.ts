import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createTestTenant, fullAccessRules, statusAndCode } from '../test-tenant'
import { fileClient, PNG } from './fixtures'

setDefaultTimeout(60_000)

let tenant: Awaited<ReturnType<typeof createTestTenant>>
let user: ReturnType<typeof fileClient>
let other: ReturnType<typeof fileClient>
beforeAll(async () => {
  tenant = await createTestTenant()
  user = fileClient(tenant, tenant.tokens.user)
  other = fileClient(tenant, tenant.tokens.other)
})

const readBy = (scope: string, more: object) => ({ operation: 'read', scope, ...more })
const fileField = { key: 'file', type: 'file' }

/** Creates a blueprint whose entities every user may write, and returns functions for them. */
async function createBlueprint(key: string, read: object, field: object = {}) {
  const permissions = [
    ...fullAccessRules('user', '*').filter((rule) => (rule as { operation: string }).operation !== 'read'),
    read,
  ]
  const fields = [
    { ...fileField, ...field },
    { key: 'files', type: 'file', multi: true },
  ]
  const { status, body } = await tenant.as('admin').post('/blueprints', { key, name: key, fields, permissions })
  expect([status, body.details]).toEqual([201, undefined])
  const entities = `/blueprints/${key}/entities`
  return {
    entities,
    create: (data: object) => tenant.as('user').post(entities, data),
    change: (id: string, data: object) => tenant.as('user').put(`${entities}/${id}`, data),
    remove: (id: string) => tenant.as('user').delete(`${entities}/${id}`),
  }
}

const read = async (url: string) => {
  const guest = await tenant.anonymous.get(url.replace('/api', ''))
  return { guest: guest.status, other: (await other.send('GET', url.replace('/api', ''))).status }
}
const CLOSED = { guest: 401, other: 404 }

describe('readers of a file', () => {
  test('a guest reads a file without a token while a field of an entity that guests may read names it', async () => {
    const { create, change, remove } = await createBlueprint('adverts', readBy('tenant', { guest: true }))
    const { body: file } = await user.upload(PNG, 'dot.png')
    expect(await read(file.url)).toEqual(CLOSED)
    const { body: first } = await create({ file: file._id })
    expect(await read(file.url)).toEqual({ guest: 200, other: 200 })
    const { body: second } = await create({ files: ['https://example.com/a.png', file.url] })
    await change(first._id, { file: null })
    expect(await read(file.url)).toEqual({ guest: 200, other: 200 })
    await remove(second._id)
    expect(await read(file.url)).toEqual(CLOSED)
    expect((await user.send('GET', file.url.replace('/api', ''))).status).toBe(200)
  })

  test('an entity that only its owner may read opens its file to nobody else', async () => {
    const { create } = await createBlueprint('diaries', readBy('user', { roleBased: ['*'] }))
    const { body: file } = await user.upload(PNG)
    await create({ file: file._id })
    expect(await read(file.url)).toEqual(CLOSED)
  })

  test('a field that a role may not read opens no file to it, whatever the entity allows', async () => {
    const { create } = await createBlueprint('deals', readBy('tenant', { guest: true }), { readRoles: ['boss'] })
    const { body: file } = await user.upload(PNG)
    expect((await create({ file: file._id })).status).toBe(201)
    expect(await read(file.url)).toEqual(CLOSED)
    expect((await tenant.as('admin').get(file.url.replace('/api', ''))).status).toBe(200)
  })

  test('a user who reads a file in an entity may name it in an own one, but not remove it', async () => {
    const { create, entities } = await createBlueprint('posters', readBy('tenant', { roleBased: ['*'] }))
    const { body: file } = await user.upload(PNG)
    expect(statusAndCode(await tenant.as('other').post(entities, { file: file._id }))).toEqual([400, 'INVALID_INPUT'])
    await create({ file: file._id })
    expect((await tenant.as('other').post(entities, { file: file._id })).status).toBe(201)
    expect((await tenant.as('other').get(`/files/${file._id}`)).status).toBe(200)
    expect(statusAndCode(await tenant.as('other').delete(`/files/${file._id}?force=true`))).toEqual([403, 'FORBIDDEN'])
  })

  test('an entity of another scope than those that the caller reaches opens no file', async () => {
    const { entities } = await createBlueprint('records', readBy('user', { roleBased: ['*'] }))
    const [{ body: mine }, { body: theirs }] = [await user.upload(PNG), await other.upload('x')]
    await tenant.as('user').post(entities, { file: mine._id })
    await tenant.as('other').post(entities, { file: theirs._id })
    expect(await read(mine.url)).toEqual(CLOSED)
    expect((await user.send('GET', theirs.url.replace('/api', ''))).status).toBe(404)
  })
})

describe('references', () => {
  test('a field keeps its files open when it is renamed or becomes a list, and closes them when it is removed', async () => {
    const { create, entities } = await createBlueprint('albums', readBy('tenant', { guest: true }))
    const { body: file } = await user.upload(PNG)
    await create({ file: file._id })
    const alter = async (...fields: object[]) => {
      const { status, body } = await tenant.as('admin').put('/blueprints/albums', { fields })
      expect([status, body.details]).toEqual([200, undefined])
    }
    const files = { key: 'files', type: 'file', multi: true }
    await alter({ ...fileField, key: 'picture', renamedFrom: 'file' }, files)
    expect(await read(file.url)).toEqual({ guest: 200, other: 200 })
    await alter({ ...fileField, key: 'picture', multi: true }, files)
    expect((await tenant.anonymous.get(entities)).body[0].picture).toEqual([file.url])
    expect(await read(file.url)).toEqual({ guest: 200, other: 200 })
    await alter({ key: 'picture', type: 'string', multi: true }, files)
    expect(await read(file.url)).toEqual(CLOSED)
    await alter(files)
    expect((await tenant.as('user').delete(`/files/${file._id}`)).status).toBe(200)
  })

  test('a file that entities name is removed only by force, and the refusal tells where it is named', async () => {
    const { create, entities } = await createBlueprint('covers', readBy('user', { roleBased: ['*'] }))
    const { body: file } = await user.upload(PNG)
    const { body: entity } = await create({ files: [file._id], identifier: 'first' })
    const refused = await tenant.as('user').delete(`/files/${file._id}`)
    expect(statusAndCode(refused)).toEqual([409, 'FILE_IN_USE'])
    expect(refused.body.details).toEqual([{ blueprint: 'covers', field: 'files', identifier: 'first' }])
    expect((await tenant.as('user').delete(`/files/${file._id}?force=true`)).status).toBe(200)
    expect((await tenant.as('user').get(`${entities}/first`)).body.files).toEqual([file.url])
    expect((await user.send('GET', file.url.replace('/api', ''))).status).toBe(404)
    expect(statusAndCode(await tenant.as('user').delete(`/files/${file._id}?force=maybe`))).toEqual([
      404,
      'FILE_NOT_FOUND',
    ])
    expect(entity._id).toBeString()
  })

  test('entities of batches and atomic imports open files, and a refused import opens none', async () => {
    const { entities } = await createBlueprint('items', readBy('tenant', { guest: true }))
    const { body: batched } = await user.upload(PNG, '1.png')
    const { body: imported } = await user.upload(PNG, '2.png')
    const { body: undone } = await user.upload(PNG, '3.png')
    const operations = [
      { op: 'create', data: { file: batched._id } },
      { op: 'upsert', identifier: 'b', data: { files: [batched._id] } },
    ]
    const results = await tenant.as('user').post(`${entities}/batch`, { operations })
    expect(results.body.results[0].entity.file).toBe(batched.url)
    expect(await read(batched.url)).toEqual({ guest: 200, other: 200 })
    const send = (lines: object[]) =>
      user.send(
        'POST',
        `${entities}/import?atomic=true`,
        { 'content-type': 'application/x-ndjson' },
        lines.map((one) => JSON.stringify(one)).join('\n'),
      )
    expect(await (await send([{ file: imported.url }])).json()).toMatchObject({ imported: 1 })
    expect(await read(imported.url)).toEqual({ guest: 200, other: 200 })
    expect(await (await send([{ file: undone.url }, { file: 'x' }])).json()).toMatchObject({ imported: 0 })
    expect(await read(undone.url)).toEqual(CLOSED)
  })

  test('a file that is deleted while entities begin to name it is either named or deleted, never both', async () => {
    const { create } = await createBlueprint('races', readBy('tenant', { guest: true }))
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, async (_, n) => {
        const { body: file } = await user.upload(`race ${n}`, `${n}.txt`)
        const [created, removed] = await Promise.all([
          create({ file: file._id }),
          tenant.as('user').delete(`/files/${file._id}`),
        ])
        const left = await tenant.as('user').get(`/files/${file._id}`)
        return [created.status, removed.status, left.status].join()
      }),
    )
    expect(outcomes.filter((outcome) => !['201,409,200', '400,200,404'].includes(outcome))).toEqual([])
  })

  test('deletions by filter and by cascade close the files of all entities that they delete', async () => {
    const { create, entities } = await createBlueprint('parents', readBy('tenant', { guest: true }))
    const children = await createBlueprint('children', readBy('tenant', { guest: true }), {
      ...{ key: 'parent', type: 'relation', target: 'parents', onDelete: 'cascade' },
    })
    const { body: first } = await user.upload(PNG, 'first.png')
    const { body: second } = await user.upload(PNG, 'second.png')
    for (let n = 0; n < 3; n++) {
      const { body: parent } = await create({ files: [first._id] })
      expect((await children.create({ parent: parent.identifier, files: [second._id] })).status).toBe(201)
    }
    expect([await read(first.url), await read(second.url)]).toEqual(Array(2).fill({ guest: 200, other: 200 }))
    const { body } = await tenant.as('user').delete(`${entities}/all?confirm=parents`)
    expect(body.deletedCount).toBe(3)
    expect([await read(first.url), await read(second.url)]).toEqual([CLOSED, CLOSED])
  })

  test('a deleted blueprint closes the files of its entities', async () => {
    const { create } = await createBlueprint('events', readBy('tenant', { guest: true }))
    const { body: file } = await user.upload(PNG)
    await create({ file: file._id })
    expect((await tenant.as('admin').delete('/blueprints/events?force=true')).status).toBe(200)
    expect(await read(file.url)).toEqual(CLOSED)
    expect((await tenant.as('user').delete(`/files/${file._id}`)).status).toBe(200)
  })
})

import { afterEach, describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { registerUser } from '../../src/accounts/users/users'
import { moveClock } from '../../src/core/clock'
import { createThingsFixture } from '../entities/fixtures'
import { apiClient, callApi, fullAccessRules, statusAndCode } from '../test-tenant'

/** Hidden fields with every property that could reveal their value. */
const fields = [
  { key: 'name', type: 'string' },
  {
    key: 'wage',
    type: 'integer',
    readRoles: ['boss'],
    writeRoles: ['boss'],
    default: 7104711,
    min: 10,
    enum: [7104711, 8150815],
  },
  { key: 'code', type: 'string', readRoles: ['boss'], unique: true },
  { key: 'place', type: 'object', readRoles: ['boss'] },
]

async function createHiddenFixture(more: object = {}) {
  const own = await createThingsFixture(fields, fullAccessRules('tenant', 'user', 'boss'), more)
  const admin = own.as('admin')
  await admin.post(own.path, { identifier: 'one', name: 'x', wage: 8150815, code: 'zulu1', place: { city: 'Ulm' } })
  return { ...own, admin, user: own.as('user'), at: `${own.path}/one` }
}
// No id, version or time has a word of seven digits or these words.
const HIDDEN_VALUES = /\b(8150815|7104711)\b|wage|zulu|Ulm|city/

test('a blueprint omits the keys, defaults, choices and bounds of fields that the caller may not read', async () => {
  const { user, admin } = await createHiddenFixture()
  for (const { body } of [await user.get('/blueprints/things'), await user.get('/blueprints')])
    expect(JSON.stringify(body)).not.toMatch(/\b(8150815|7104711)\b|wage|code|place/)
  expect((await admin.get('/blueprints/things')).body.fields).toHaveLength(4)
})

test('no answer to reading, creating or updating entities contains a hidden value', async () => {
  const { user, path, at } = await createHiddenFixture()
  for (const form of [
    '',
    '$flat=false',
    '$select=name',
    '$select=metadata',
    '$select=metadata,name&$flat=false',
    '$count=true',
  ])
    for (const answer of [
      await user.get(`${at}?${form}`),
      await user.get(`${path}?${form}`),
      await user.put(`${at}?${form}`, { name: 'y' }),
      await user.patch(`${at}?${form}`, {}),
      await user.post(`${path}?${form}`, { name: 'z' }),
    ]) {
      expect(answer.status).toBeOneOf([200, 201])
      expect(JSON.stringify(answer.body) + JSON.stringify([...answer.headers])).not.toMatch(HIDDEN_VALUES)
    }
})

test('a filter, sort order or selection with a hidden field is refused with 400 INVALID_INPUT', async () => {
  const { user, path, at } = await createHiddenFixture()
  for (const query of [
    'wage=8150815',
    'name=x&wage[$gt]=1',
    'place.city=Ulm',
    '$sort=name,wage',
    '$sort=-code',
    '$select=name,wage',
    'wage[$exists]=true&$count=true',
    'code[$in]=zulu1,zulu2',
    'metadata.wage=8150815',
  ])
    for (const answer of [
      await user.get(`${path}?${query}`),
      await user.get(`${at}?${query}`),
      await user.delete(`${path}/all?confirm=things&${query}`),
    ]) {
      expect(statusAndCode(answer), query).toEqual([400, 'INVALID_INPUT'])
      expect(JSON.stringify(answer.body)).not.toMatch(/7104711|"8150815"/)
    }
  expect((await user.get(`${path}?$count=true`)).headers.get('x-total-count')).toBe('1')
})

test('a role whose name contains a comma does not grant the roles between its commas', async () => {
  const own = await createThingsFixture(fields.slice(0, 2), fullAccessRules('tenant', 'user'))
  const createClient = async (username: string, roles: string[]) => {
    const { _id } = await registerUser(own.tenant, { username, email: `${username}@x.test` }, ['user', ...roles])
    return apiClient(own.origin, { 'x-api-key': (await issueApiToken(own.tenant, _id, { nickname: 't' })).token })
  }
  const [both, one] = [await createClient('both', ['x', 'boss']), await createClient('one', ['x,boss'])]
  expect((await both.get(`${own.path}?wage=8150815`)).status).toBe(200)
  expect((await one.get(`${own.path}?wage=8150815`)).status).toBe(400)
})

test('the ETag changes with a hidden value without revealing it', async () => {
  const { user, admin, at } = await createHiddenFixture()
  const before = await user.get(at)
  await admin.put(at, { wage: 7104711 })
  const etag = before.headers.get('etag')!
  const after = await user.get(at, { 'if-none-match': etag })
  expect([after.status, after.body.metadata]).toEqual([200, before.body.metadata])
  expect((await user.get(at, { 'if-none-match': after.headers.get('etag')! })).status).toBe(304)
  expect(statusAndCode(await user.put(at, { name: 'y' }, { 'if-match': etag }))).toEqual([412, 'VERSION_MISMATCH'])
  const [one, same] = [await admin.put(at, { wage: 8150815 }), await admin.put(at, { wage: 8150815 })]
  expect(one.headers.get('etag')!.length).toBe(same.headers.get('etag')!.length)
})

describe('a taken value of a unique field with restricted reading', () => {
  const CONFLICT = [409, 'CONFLICT']
  const email = { key: 'email', type: 'string', unique: true, readRoles: ['boss'] }

  async function createUniqueFixture() {
    const own = await createThingsFixture([fields[0]!, email], fullAccessRules('tenant', 'user'))
    expect((await own.as('admin').post(own.path, { name: 'x', email: 'ada@x.test' })).status).toBe(201)
    const importOne = async (line: object, more = '') => {
      const headers = { 'x-api-key': own.tokens.user, 'content-type': 'application/x-ndjson' }
      const url = `${own.origin}/api${own.path}/import?format=ndjson${more}`
      return (await callApi('POST', url, { headers, raw: `${JSON.stringify(line)}\n` })).body
    }
    return { ...own, user: own.as('user'), admin: own.as('admin'), importOne }
  }
  afterEach(() => moveClock())

  test('a taken value is refused with 409 UNIQUE_VIOLATION and the field for users who may read it', async () => {
    const { admin, path } = await createUniqueFixture()
    const { status, body } = await admin.post(path, { email: 'ada@x.test' })
    expect([status, body.code]).toEqual([409, 'UNIQUE_VIOLATION'])
    expect(body.details).toEqual([{ path: '/email', message: 'email must be unique.' }])
  })

  test('a taken value is refused with 409 CONFLICT without field or reason for users who may not read it', async () => {
    const { user, path, importOne } = await createUniqueFixture()
    const own = (await user.post(path, { name: 'y', email: 'mine@x.test' })).body._id
    const taken = { name: 'z', email: 'ada@x.test' }
    const create = [{ op: 'create', data: taken }]
    const answers = [
      await user.post(path, taken),
      await user.put(`${path}/${own}`, taken),
      await user.post(`${path}/batch`, { operations: create }),
      await user.post(`${path}/batch`, { operations: [{ op: 'upsert', identifier: 'new', data: taken }] }),
    ]
    for (const answer of answers) {
      expect(statusAndCode(answer)).toEqual(CONFLICT)
      expect(JSON.stringify(answer.body)).not.toMatch(/email|unique|another|already|taken/i)
    }
    const imported = await importOne(taken)
    expect(imported.errors).toMatchObject([{ code: 'CONFLICT' }])
    expect(JSON.stringify(imported)).not.toMatch(/email|unique/)
  })

  test('a dry run of an import answers the same for a taken and a free value', async () => {
    const { importOne } = await createUniqueFixture()
    const dry = (email: string) => importOne({ name: 'z', email }, '&dryRun=true')
    expect(await dry('ada@x.test')).toEqual({ imported: 1, failed: 0, errors: [] })
    expect(await dry('nobody@x.test')).toEqual({ imported: 1, failed: 0, errors: [] })
  })

  test('a user with 60 conflicts within an hour gets 429 RATE_LIMITED for taken and free values', async () => {
    const { user, admin, path, as } = await createUniqueFixture()
    const guess = (by = user, email = 'ada@x.test') => by.post(path, { email })
    for (let n = 0; n < 60; n++) expect(statusAndCode(await guess())).toEqual(CONFLICT)
    for (const email of ['ada@x.test', 'nobody@x.test'])
      expect(statusAndCode(await guess(user, email))).toEqual([429, 'RATE_LIMITED'])
    expect((await user.post(path, { name: 'without' })).status).toBe(201)
    expect(statusAndCode(await guess(as('other')))).toEqual(CONFLICT)
    expect(statusAndCode(await guess(admin))).toEqual([409, 'UNIQUE_VIOLATION'])
    moveClock(Date.now() + 3_601_000)
    expect((await guess(user, 'free@x.test')).status).toBe(201)
  })

  test('a taken computed value is refused with 409 CONFLICT for users who may neither read nor write the field', async () => {
    const secret = { key: 'secret', type: 'string', unique: true, readRoles: ['boss'], writeRoles: ['boss'] }
    const own = await createThingsFixture([fields[0]!, secret], fullAccessRules('tenant', 'user'), {
      computed: { secret: '$uppercase(name)' },
    })
    expect((await own.as('user').post(own.path, { name: 'taken' })).status).toBe(201)
    expect(statusAndCode(await own.as('user').post(own.path, { name: 'TAKEN' }))).toEqual(CONFLICT)
    const admins = await own.as('admin').post(own.path, { name: 'TAKEN' })
    expect(admins.body.details).toEqual([{ path: '/secret', message: 'secret must be unique.' }])
  })
})

test('a missing required field that the user may not write is refused with 403 FORBIDDEN without its name', async () => {
  const needed = { key: 'needed', type: 'string', required: true, readRoles: ['boss'], writeRoles: ['boss'] }
  const own = await createThingsFixture([fields[0]!, needed], fullAccessRules('tenant', 'user'))
  const { status, body } = await own.as('user').post(own.path, { name: 'x' })
  expect([status, body.code, JSON.stringify(body).includes('needed"')]).toEqual([403, 'FORBIDDEN', false])
  expect((await own.as('admin').post(own.path, {})).body.details).toEqual([
    { path: '/needed', message: 'needed is required.' },
  ])
  const { body: made } = await own.as('admin').post(own.path, { needed: 'x' })
  expect((await own.as('user').put(`${own.path}/${made._id}`, { name: 'y' })).status).toBe(200)
})

test('an update with the right value of a hidden field is answered like one with a wrong value', async () => {
  const { user, admin, at } = await createHiddenFixture()
  const outcomeOf = async (body: object) => {
    const { status, body: answer } = await user.put(at, body)
    return JSON.stringify([status, answer.code, answer.message, answer.details])
  }
  for (const [right, wrong] of [
    [{ wage: 8150815 }, { wage: 7104711 }],
    [{ metadata: { wage: 8150815 } }, { metadata: { wage: 7104711 } }],
    [{ place: { city: 'Ulm' } }, { place: { city: 'Bonn' } }],
    [
      { place: { city: 'Ulm' }, metadata: { place: 1 } },
      { place: { city: 'Bonn' }, metadata: { place: 1 } },
    ],
  ]) {
    await admin.put(at, { place: { city: 'Ulm' } })
    const one = await outcomeOf(right!)
    await admin.put(at, { place: { city: 'Ulm' } })
    expect(await outcomeOf(wrong!)).toBe(one)
  }
  expect((await admin.get(at)).body.wage).toBe(8150815)
})

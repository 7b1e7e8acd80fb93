import { describe, expect, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { databaseUrl } from '../storage/engines'
import { waitUntil } from '../wait-until'

const env = { ATOLL_DATABASE_URL: databaseUrl ?? '' }

describe.skipIf(!databaseUrl)('two servers on one database', () => {
  test('two servers on one database share sessions, and changed blueprints and logouts apply on both', async () => {
    const [one, two] = [
      { at: createTempFolder(), env },
      { at: createTempFolder(), env },
    ]
    const id = `nodes-${crypto.randomUUID().slice(0, 8)}`
    await createTenantByCli(one, id)
    await using first = await startAtoll(one)
    await using second = await startAtoll(two)
    const headers = await signIn(first.url, id)
    const [onFirst, onSecond] = [apiCaller(first.url, headers), apiCaller(second.url, headers)]
    expect((await onSecond('GET', '/api/me')).body.username).toBe('root')

    const fields = [{ key: 'name', type: 'string' }]
    expect((await onFirst('POST', '/api/blueprints', { key: 'things', name: 'Things', fields })).status).toBe(201)
    expect((await onSecond('GET', '/api/blueprints/things')).body.fields).toHaveLength(1)
    const more = { fields: [...fields, { key: 'size', type: 'integer' }] }
    expect((await onFirst('PUT', '/api/blueprints/things', more)).status).toBe(200)
    const began = performance.now()
    const seen = await waitUntil(
      () => onSecond('POST', '/api/blueprints/things/entities', { name: 'a', size: 3 }),
      ({ status }) => status === 201,
    )
    expect(seen.status).toBe(201)
    expect(performance.now() - began).toBeLessThan(1_000 + 3_000) // a busy machine takes its time

    await onFirst('POST', '/api/logout')
    const answer = await waitUntil(
      () => onSecond('GET', '/api/me'),
      ({ status }) => status === 401,
    )
    expect(answer.status).toBe(401)
    expect(performance.now() - began).toBeLessThan(2_000 + 3_000)
  }, 30_000)

  test('two servers answer concurrent uses of one refresh token with the same new token', async () => {
    const [one, two] = [
      { at: createTempFolder(), env },
      { at: createTempFolder(), env },
    ]
    const id = `refresh-${crypto.randomUUID().slice(0, 8)}`
    await createTenantByCli(one, id)
    await using first = await startAtoll(one)
    await using second = await startAtoll(two)
    const [onFirst, onSecond] = [first, second].map(({ url }) => apiCaller(url, { tenant: id }))
    const person = { username: 'ada', password: 'correct horse', authType: 'oauth' }
    let { refreshToken } = (await onFirst!('POST', '/api/signup', person)).body.payload
    for (let round = 0; round < 10; round++) {
      const answers = await Promise.all(
        [onFirst!, onSecond!, onFirst!, onSecond!].map((ask) => ask('POST', '/api/token/refresh', { refreshToken })),
      )
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
      const successors = new Set(answers.map(({ body }) => body.payload.refreshToken as string))
      expect(successors.size).toBe(1)
      refreshToken = [...successors][0]
    }
    expect((await onSecond!('POST', '/api/token/refresh', { refreshToken })).status).toBe(200)
  }, 60_000)

  test('two servers both apply the activation of a workspace, changed roles and a removed membership', async () => {
    const [one, two] = [
      { at: createTempFolder(), env },
      { at: createTempFolder(), env },
    ]
    const id = `shared-${crypto.randomUUID().slice(0, 8)}`
    await createTenantByCli(one, id)
    await using first = await startAtoll(one)
    await using second = await startAtoll(two)
    const boss = apiCaller(first.url, await signIn(first.url, id))
    const person = { username: 'ada', password: 'correct horse', authType: 'oauth' }
    const { body } = await apiCaller(first.url, { tenant: id })('POST', '/api/signup', person)
    const headers = { tenant: id, authorization: `Bearer ${body.payload.token}` }
    const [onFirst, onSecond] = [apiCaller(first.url, headers), apiCaller(second.url, headers)]
    expect((await onSecond('GET', '/api/me')).body.workspace).toBeNull()

    const { _id } = (await boss('POST', '/api/workspaces', { name: 'Office' })).body
    const [at, userId] = [`/api/workspaces/${_id}`, body.payload.user._id]
    await boss('POST', `${at}/members`, { userId, roles: ['member'] })
    expect((await onFirst('POST', `${at}/activate`)).status).toBe(200)
    const expectRolesOnSecond = async (wanted: string[] | undefined) => {
      const fits = ({ body }: { body: { workspace: { roles: string[] } | null } }) =>
        Bun.deepEquals(body.workspace?.roles, wanted)
      expect(fits(await waitUntil(() => onSecond('GET', '/api/me'), fits))).toBe(true)
    }
    await expectRolesOnSecond(['member'])
    await boss('PUT', `${at}/members/${userId}`, { roles: ['lead'] })
    await expectRolesOnSecond(['lead'])
    await boss('DELETE', `${at}/members/${userId}`)
    await expectRolesOnSecond(undefined)
  }, 30_000)

  test.skipIf(process.platform !== 'linux')(
    'two processes of one server see at once what each other has acknowledged',
    async () => {
      const at = { at: createTempFolder(), env: { ...env, ATOLL_WORKERS: '2' } }
      const id = `processes-${crypto.randomUUID().slice(0, 8)}`
      await createTenantByCli(at, id)
      await using server = await startAtoll(at)
      const call = apiCaller(server.url, { ...(await signIn(server.url, id)), connection: 'close' })
      const fields = [{ key: 'name', type: 'string' }]
      expect((await call('POST', '/api/blueprints', { key: 'things', name: 'Things', fields })).status).toBe(201)
      const things = '/api/blueprints/things/entities'
      const made = await Promise.all(Array.from({ length: 20 }, (_, n) => call('POST', things, { name: `${n}` })))
      for (const { body } of made) expect((await call('GET', `${things}/${body._id}`)).status).toBe(200)
      expect(await server.end('SIGTERM')).toBe(0)
    },
    30_000,
  )
})

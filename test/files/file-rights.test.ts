import { beforeAll, expect, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { apiClient, callApi, createTestTenant, statusAndCode } from '../test-tenant'

let tenant: Awaited<ReturnType<typeof createTestTenant>>
beforeAll(async () => {
  tenant = await createTestTenant()
  const roleBased = ['create', 'read', 'update'].map((operation) => ({
    operation,
    scope: 'tenant',
    roleBased: ['user'],
  }))
  const fields = [
    { key: 'title', type: 'string' },
    { key: 'paper', type: 'file' },
  ]
  const page = { key: 'pages', name: 'Pages', fields, permissions: roleBased }
  expect((await tenant.as('admin').post('/blueprints', page)).status).toBe(201)
})

const issue = async (scopes: string[]) =>
  (await issueApiToken(tenant.tenant, tenant.users.user, { nickname: 'limited', scopes })).token

const upload = (token = tenant.tokens.user, query = '') =>
  callApi('POST', `${tenant.origin}/api/files?name=a.txt${query}`, {
    headers: { 'x-api-key': token },
    raw: crypto.randomUUID(),
  })

const sendForm = (token: string, content: string, name = 'a.txt') => {
  const file = `--b\r\ncontent-disposition: form-data; name="paper"; filename="${name}"\r\n\r\n${content}\r\n`
  const raw = `--b\r\ncontent-disposition: form-data; name="title"\r\n\r\nA page\r\n${file}--b--\r\n`
  const headers = { 'x-api-key': token, 'content-type': 'multipart/form-data; boundary=b' }
  return callApi('POST', `${tenant.origin}/api/blueprints/pages/entities`, { headers, raw })
}

test('a form stores a file only by a token that may write files', async () => {
  const entitiesOnly = await issue(['entities:write'])
  const count = async () => (await tenant.as('admin').get('/files')).body.length
  const before = await count()
  expect(statusAndCode(await upload(entitiesOnly))).toEqual([403, 'FORBIDDEN'])
  expect(statusAndCode(await sendForm(entitiesOnly, 'content'))).toEqual([403, 'FORBIDDEN'])
  expect(await count()).toBe(before)
  // An input that was left empty stores nothing.
  expect((await sendForm(entitiesOnly, '', '')).status).toBe(201)
  expect((await sendForm(await issue(['entities:write', 'files:write']), 'content')).status).toBe(201)
  expect(await count()).toBe(before + 1)
})

test('the owner changes whether a file stays, and gets the file; others do not', async () => {
  const { body: file } = await upload()
  expect(file).not.toHaveProperty('keep')
  const user = tenant.as('user')
  for (const keep of [true, false, false]) {
    const changed = await user.put(`/files/${file._id}`, { keep })
    expect([changed.status, changed.body]).toEqual([200, { ...file, keep }])
  }
  expect(statusAndCode(await user.put(`/files/${file._id}`, { keep: 'yes' }))).toEqual([400, 'INVALID_INPUT'])
  expect(statusAndCode(await tenant.as('other').put(`/files/${file._id}`, { keep: true }))).toEqual([
    404,
    'FILE_NOT_FOUND',
  ])
  expect((await tenant.anonymous.put(`/files/${file._id}`, { keep: true })).status).toBe(401)
  expect((await tenant.as('admin').put(`/files/${file._id}`, { keep: true })).body.keep).toBe(true)
  expect((await (await createTestTenant()).as('admin').put(`/files/${file._id}`, { keep: true })).status).toBe(404)
})

test('a token of a file that was changed is called invalid, and only an old one expired', async () => {
  const { body: file } = await upload()
  const { body: link } = await tenant.as('user').post(`/files/${file._id}/token`)
  const read = async (token: string) =>
    (await tenant.anonymous.get(`${file.url.replace('/api', '')}?token=${token}`)).body.message
  const [time, signature] = link.token.split('.')
  const changed = `${signature[0] === 'a' ? 'b' : 'a'}${signature.slice(1)}`
  const later = (Number.parseInt(time, 36) + 60_000).toString(36)
  for (const token of [
    `${time}.${changed}`,
    `${later}.${signature}`,
    `0.${signature}`,
    'x',
    '',
    '.',
    `${link.token}x`,
  ]) {
    const message = await read(token)
    expect(message, token).not.toContain('expired')
  }
  const { body: other } = await upload()
  const otherLink = (await tenant.as('user').post(`/files/${other._id}/token`)).body
  expect(await read(otherLink.token)).toContain('not one of this file')
})

test('a token that is bound to a workspace reaches the files of its user in that workspace only', async () => {
  const user = tenant.as('user')
  const metadata = { isActive: true }
  await tenant.as('admin').put('/configurations/workspace-configuration', { metadata })
  const outside = (await upload()).body
  const first = (await user.post('/workspaces', { name: 'First' })).body
  const second = (await user.post('/workspaces', { name: 'Second' })).body
  const bind = async (workspace: string) =>
    (await issueApiToken(tenant.tenant, tenant.users.user, { nickname: workspace, workspace })).token
  const [inFirst, inSecond] = [await bind(first._id), await bind(second._id)]
  const own = (await upload(inFirst)).body
  expect(own.workspace).toBe(first._id)
  const by = (token: string) => apiClient(tenant.origin, { 'x-api-key': token })
  expect((await by(inFirst).get(`/files/${own._id}`)).status).toBe(200)
  expect((await by(inFirst).get('/files')).body.map((file: { _id: string }) => file._id)).toEqual([own._id])
  expect((await by(inSecond).get('/files')).body).toEqual([])
  for (const [token, file] of [
    [inSecond, own],
    [inFirst, outside],
  ] as const) {
    for (const answer of [
      await by(token).get(`/files/${file._id}`),
      await by(token).get(file.url.replace('/api', '')),
      await by(token).put(`/files/${file._id}`, { keep: true }),
      await by(token).delete(`/files/${file._id}`),
      await by(token).post(`/files/${file._id}/token`),
    ])
      expect(statusAndCode(answer)).toEqual([404, 'FILE_NOT_FOUND'])
  }
  expect((await user.get(`/files/${own._id}`)).status).toBe(200)
})

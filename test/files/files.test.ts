import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { HOUR_MS, moveClock, now } from '../../src/core/clock'
import { removeUnusedContents } from '../../src/files/contents'
import { fileContents } from '../../src/files/tables'
import { setQuotas } from '../../src/limits/quotas'
import { ID, TIME } from '../expectations'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { fileClient, listStored, PNG, sha256Of } from './fixtures'

setDefaultTimeout(60_000)

let tenant: Awaited<ReturnType<typeof createTestTenant>>
let user: ReturnType<typeof fileClient>
beforeAll(async () => {
  tenant = await createTestTenant()
  user = fileClient(tenant, tenant.tokens.user)
})
const contentPath = ({ body }: { body: { url: string } }) => body.url.replace('/api', '')

describe('uploads', () => {
  test('a user uploads a raw body and gets a file with the detected type, the size and the hash', async () => {
    const { status, body } = await user.upload(PNG, 'dot.png', 'text/html')
    expect(status).toBe(201)
    expect(body).toEqual({
      ...{ _id: ID, name: 'dot.png', type: 'image/png', size: PNG.length, width: 1, height: 1, sha256: sha256Of(PNG) },
      ...{ visibility: 'private', owner: tenant.users.user, workspace: null, created: TIME },
      url: `/api/files/${body._id}/dot.png`,
    })
  })

  test('a user uploads a multipart form and gets the file with the name in the form', async () => {
    const form = new FormData()
    form.set('file', new File([PNG], 'ö "x".png', { type: 'image/gif' }))
    const { status, body } = await user.uploadForm(form)
    expect([status, body.type, body.size]).toEqual([201, 'image/png', PNG.length])
    const response = await user.send('GET', contentPath({ body }))
    expect(Buffer.from(await response.arrayBuffer()).equals(PNG)).toBeTrue()
  })

  test('a form without the part file, with two files or with unknown parts is refused and leaves nothing', async () => {
    const { id, tokens, origin } = await createTestTenant()
    const client = fileClient({ origin, tokens }, tokens.user)
    const none = new FormData()
    const two = new FormData()
    two.append('file', new File([PNG], 'a.png'))
    two.append('file', new File([PNG], 'b.png'))
    const unknown = new FormData()
    unknown.append('file', new File([PNG], 'a.png'))
    unknown.append('title', 'x')
    for (const form of [none, two, unknown])
      expect(statusAndCode((await client.uploadForm(form)) as never)).toEqual([400, 'INVALID_INPUT'])
    expect(listStored(id)).toEqual([])
    expect((await tenant.as('user').get('/files')).status).toBe(200)
  })

  test('an upload without a credential is refused', async () => {
    const response = await tenant.anonymous.post('/files', {})
    expect(statusAndCode(response)).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('an empty body is refused', async () => {
    expect((await user.upload('')).body.code).toBe('INVALID_INPUT')
  })

  test('an API token needs the scopes files:read and files:write', async () => {
    const issue = (scopes: string[]) => issueApiToken(tenant.tenant, tenant.users.user, { nickname: 's', scopes })
    const { token: readToken } = await issue(['files:read'])
    const reader = fileClient(tenant, readToken)
    expect((await reader.upload('x')).status).toBe(403)
    expect((await reader.send('GET', '/files')).status).toBe(200)
    const { token: otherToken } = await issue(['entities:write'])
    expect((await fileClient(tenant, otherToken).send('GET', '/files')).status).toBe(403)
    const { token: writeToken } = await issue(['files:write'])
    expect((await fileClient(tenant, writeToken).upload('x')).status).toBe(201)
  })
})

describe('lists', () => {
  test('a user lists only own files, an admin those of everybody, with filters and a cursor', async () => {
    const { id: _, ...island } = await createTestTenant()
    const [own, other] = [fileClient(island, island.tokens.user), fileClient(island, island.tokens.other)]
    await own.upload('one', '1.txt')
    await own.upload(PNG, '2.png')
    await other.upload('three', '3.txt')
    const names = (response: { body: { name: string }[] }) => response.body.map(({ name }) => name)
    expect(names(await island.as('user').get('/files'))).toEqual(['2.png', '1.txt'])
    expect(names(await island.as('admin').get('/files'))).toEqual(['3.txt', '2.png', '1.txt'])
    expect(names(await island.as('admin').get('/files?type=image/*'))).toEqual(['2.png'])
    expect(names(await island.as('admin').get(`/files?owner=${island.users.other}`))).toEqual(['3.txt'])
    expect(names(await island.as('admin').get('/files?name=1.txt'))).toEqual(['1.txt'])
    expect(statusAndCode(await island.as('admin').get('/files?type=%25'))).toEqual([400, 'INVALID_INPUT'])
    const first = await island.as('admin').get('/files?limit=2')
    const [, next = ''] = /<\/api([^>]+)>/.exec(first.headers.get('link')!) ?? []
    expect(names(await island.as('admin').get(next))).toEqual(['1.txt'])
  })

  test('a file of somebody else is not found, by its id, its content or its token', async () => {
    const { body } = await user.upload('secret')
    const other = tenant.as('other')
    for (const response of [
      await other.get(`/files/${body._id}`),
      await other.get(contentPath({ body })),
      await other.delete(`/files/${body._id}`),
      await other.post(`/files/${body._id}/token`),
    ])
      expect(statusAndCode(response)).toEqual([404, 'FILE_NOT_FOUND'])
    expect((await tenant.as('admin').get(`/files/${body._id}`)).status).toBe(200)
    const stranger = await createTestTenant()
    expect((await stranger.as('admin').get(`/files/${body._id}`)).status).toBe(404)
  })
})

describe('contents', () => {
  test('a client reads ranges, revalidates by the ETag, and asks for the headers alone', async () => {
    const path = contentPath(await user.upload('0123456789', 'digits.txt'))
    const read = async (headers: Record<string, string>, method = 'GET') => {
      const response = await user.send(method, path, headers)
      return [response.status, await response.text(), response.headers.get('content-range')]
    }
    expect(await read({})).toEqual([200, '0123456789', null])
    expect(await read({ range: 'bytes=2-4' })).toEqual([206, '234', 'bytes 2-4/10'])
    expect(await read({ range: 'bytes=7-' })).toEqual([206, '789', 'bytes 7-9/10'])
    expect(await read({ range: 'bytes=-3' })).toEqual([206, '789', 'bytes 7-9/10'])
    expect(await read({ range: 'bytes=8-99' })).toEqual([206, '89', 'bytes 8-9/10'])
    expect(await read({ range: 'bytes=0-1,4-5' })).toEqual([200, '0123456789', null])
    expect(await read({ range: 'bytes=2-4', 'if-range': '"old"' })).toEqual([200, '0123456789', null])
    const beyond = await user.send('GET', path, { range: 'bytes=10-' })
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, 'bytes */10'])
    const head = await user.send('HEAD', path)
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '10', ''])
    expect(await read({ 'if-none-match': head.headers.get('etag')! })).toEqual([304, '', null])
  })

  test('a token opens the content of one file to guests for five minutes', async () => {
    const { body } = await user.upload('for guests')
    const { body: other } = await user.upload('not for guests')
    const link = await tenant.as('user').post(`/files/${body._id}/token`)
    const read = (path: string) => tenant.anonymous.get(path.replace('/api', ''))
    expect(link.status).toBe(200)
    expect((await read(link.body.url)).body).toBe('for guests')
    expect((await read(`${other.url}?token=${link.body.token}`)).status).toBe(401)
    expect((await read(`${body.url}?token=x${link.body.token}`)).status).toBe(401)
    expect((await read(body.url)).status).toBe(401)
    moveClock(now() + 6 * 60_000)
    try {
      expect((await read(link.body.url)).status).toBe(401)
    } finally {
      moveClock()
    }
  })

  test('two files of one content share it, and a job removes it after the last one', async () => {
    const { id, tenant: island, origin, tokens, as } = await createTestTenant()
    const client = fileClient({ origin, tokens }, tokens.user)
    const [first, second] = [await client.upload('same', '1.txt'), await client.upload('same', '2.txt')]
    expect(listStored(id)).toEqual([`${sha256Of('same').slice(0, 2)}/${sha256Of('same')}`])
    const lease = { ...island, signal: new AbortController().signal } as never
    const removeLater = async () => {
      moveClock(now() + 2 * HOUR_MS)
      await removeUnusedContents(lease).finally(() => moveClock())
    }
    await as('user').delete(`/files/${first.body._id}`)
    await removeLater()
    expect((await client.send('GET', contentPath(second))).status).toBe(200)
    await as('user').delete(`/files/${second.body._id}`)
    await removeUnusedContents(lease)
    expect(listStored(id)).toHaveLength(1)
    await removeLater()
    expect(listStored(id)).toEqual([])
    expect(await island.db.$count(fileContents)).toBe(0)
    expect((await client.upload('same')).status).toBe(201)
  })

  test('a quota of files and one of storage refuse an upload that exceeds it', async () => {
    const { id, origin, tokens } = await createTestTenant()
    const client = fileClient({ origin, tokens }, tokens.user)
    await setQuotas(id, { files: 1 })
    expect((await client.upload('one')).status).toBe(201)
    expect(statusAndCode((await client.upload('two')) as never)).toEqual([403, 'QUOTA_EXCEEDED'])
    await setQuotas(id, { files: null, storage: 4 << 20 })
    expect(statusAndCode((await client.upload(new Uint8Array(8 << 20))) as never)).toEqual([403, 'QUOTA_EXCEEDED'])
    expect(listStored(id)).toHaveLength(1)
  })

  test('the files of a deleted user are deleted with the user', async () => {
    const { users, tokens, origin, as } = await createTestTenant()
    const { body } = await fileClient({ origin, tokens }, tokens.other).upload('mine')
    expect((await as('admin').delete(`/users/${users.other}`)).status).toBe(200)
    expect((await as('admin').get(`/files/${body._id}`)).status).toBe(404)
  })
})

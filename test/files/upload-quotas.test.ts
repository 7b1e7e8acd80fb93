import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { handleRequest } from '../../src/gateway'
import { setQuotas } from '../../src/limits/quotas'
import { tenantFolder } from '../../src/tenancy/databases'
import { packTar, siteClient } from '../sites/fixtures'
import { createTestTenant, fullAccessRules } from '../test-tenant'
import { waitUntil } from '../wait-until'
import { fileClient, listStored } from './fixtures'

setDefaultTimeout(60_000)

const QUOTA = 4 << 20
const MEGABYTE = 1 << 20
const entities = '/blueprints/albums/entities'

let tenant: Awaited<ReturnType<typeof createTestTenant>>
let user: ReturnType<typeof fileClient>
beforeAll(async () => {
  tenant = await createTestTenant()
  user = fileClient(tenant, tenant.tokens.user)
  const permissions = [...fullAccessRules('user', '*'), { operation: 'create', guest: true }]
  const fields = [{ key: 'pictures', type: 'file', multi: true }]
  const made = await tenant.as('admin').post('/blueprints', { key: 'albums', name: 'Albums', fields, permissions })
  expect(made.status).toBe(201)
  await setQuotas(tenant.id, { storage: QUOTA })
})

const sumDrafts = () =>
  listStored(tenant.id)
    .filter((path) => path.includes('.drafts'))
    .reduce((sum, path) => sum + statSync(join(tenantFolder(tenant.id), 'files', path)).size, 0)

/** Returns a body of these parts that arrives slowly, and the most bytes that were on the disk meanwhile. */
function sendSlowly(parts: (string | Uint8Array<ArrayBuffer>)[]) {
  const observed = { bytes: 0 }
  const left = parts.map((part) => (typeof part === 'string' ? new TextEncoder().encode(part) : part.slice()))
  const body = new ReadableStream({
    async pull(controller) {
      await Bun.sleep(5)
      observed.bytes = Math.max(observed.bytes, sumDrafts())
      const next = left.shift()
      if (next) controller.enqueue(next)
      else controller.close()
    },
  })
  return { body, observed }
}

const megabyte = new Uint8Array(MEGABYTE)
const form = { 'content-type': 'multipart/form-data; boundary=b' }
const head = (number: number) =>
  `\r\n--b\r\nContent-Disposition: form-data; name="pictures"; filename="${number}"\r\n\r\n`
const codeOf = async (response: Response) => [response.status, ((await response.json()) as { code: string }).code]

describe('uploads beyond a quota', () => {
  test('an upload is refused before its bytes beyond the quota of storage are written', async () => {
    const { body, observed } = sendSlowly(Array(10).fill(megabyte))
    expect(await codeOf(await user.send('POST', '/files', {}, body))).toEqual([403, 'QUOTA_EXCEEDED'])
    expect(observed.bytes).toBeWithin(1, QUOTA)
    expect(listStored(tenant.id)).toEqual([])
  })

  test('a form of several files is refused when they exceed the quota together', async () => {
    const { body, observed } = sendSlowly([
      ...Array.from({ length: 10 }, (_, number) => [head(number), megabyte]).flat(),
      '\r\n--b--\r\n',
    ])
    expect(await codeOf(await user.send('POST', entities, form, body))).toEqual([403, 'QUOTA_EXCEEDED'])
    expect(observed.bytes).toBeWithin(1, QUOTA)
    expect(listStored(tenant.id)).toEqual([])
  })

  test('uploads at the same time are refused when they exceed the quota together, and the others are stored', async () => {
    const upload = () => user.send('POST', '/files', {}, crypto.getRandomValues(new Uint8Array(50_000)))
    const responses = await Promise.all(Array.from({ length: 100 }, upload))
    const stored = responses.filter(({ status }) => status === 201).length
    expect(responses.filter(({ status }) => status === 403)).toHaveLength(100 - stored)
    expect(stored * 50_000).toBeWithin(1, QUOTA)
    expect(listStored(tenant.id)).toHaveLength(stored)
  })

  test('a guest who sends a file in a form is refused before any of it is written', async () => {
    const { body, observed } = sendSlowly([head(1), megabyte, megabyte, '\r\n--b--\r\n'])
    const headers = { ...form, host: new URL(tenant.origin).host }
    const request = new Request(`${tenant.origin}/api${entities}`, { method: 'POST', headers, body })
    expect(await codeOf(await handleRequest(request))).toEqual([401, 'UNAUTHENTICATED'])
    expect(observed.bytes).toBe(0)
  })
})

test('deleting files makes room at once, also where a site is', async () => {
  const full = await createTestTenant()
  const by = fileClient(full, full.tokens.user)
  expect((await siteClient(full).deploy(await packTar(['index.html', crypto.randomUUID()]))).status).toBe(201)
  await setQuotas(full.id, { storage: QUOTA })
  const upload = () => by.send('POST', '/files', {}, crypto.getRandomValues(new Uint8Array(2 * 65_536)).buffer as never)
  const ids: string[] = []
  let refused: Response | undefined
  while (!refused) {
    const response = await upload()
    if (response.status === 201) ids.push(((await response.json()) as { _id: string })._id)
    else refused = response
  }
  expect(await codeOf(refused)).toEqual([403, 'QUOTA_EXCEEDED'])
  for (const id of ids.slice(0, 5)) expect((await by.send('DELETE', `/files/${id}`)).status).toBe(200)
  await waitUntil(async () => (await upload()).status === 201)
})

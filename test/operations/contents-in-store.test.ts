import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  apiCaller,
  createTempFolder,
  createTenantByCli,
  type RunningAtoll,
  type RunOptions,
  runAtoll,
  signIn,
  startAtoll,
} from '../fakes/cli'
import { queryDatabase } from '../fakes/postgres'
import { startS3Server } from '../fakes/s3-server'
import { sha256Of } from '../files/fixtures'
import { packTar } from '../sites/fixtures'
import { databaseUrl } from '../storage/engines'
import { waitUntil } from '../wait-until'

setDefaultTimeout(120_000)

const TOKEN = 'the-operator-token-of-the-store'
const FILES = { 'a.txt': 'the first', 'b.txt': 'the second' }
const PAGE = `<!doctype html><title>Home</title>${'<p>A paragraph.'.repeat(100)}`

let s3: Awaited<ReturnType<typeof startS3Server>>
let at: RunOptions
let server: RunningAtoll
let store: Bun.S3Client

beforeAll(async () => {
  s3 = await startS3Server('files')
  const { S3_ENDPOINT: endpoint, S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey } = s3.env
  store = new Bun.S3Client({ endpoint, accessKeyId, secretAccessKey, region: s3.env.S3_REGION, bucket: 'files' })
  const env = {
    ...s3.env,
    ...(databaseUrl && { ATOLL_DATABASE_URL: await createDatabase() }),
    ATOLL_FILES_URL: 's3://files/contents',
    ATOLL_BACKUP_TO: 's3://files/backups',
    ATOLL_OPERATOR_TOKEN: TOKEN,
  }
  at = { at: createTempFolder(), env }
  await createTenantByCli(at, 'acme')
  server = await startAtoll(at)
  await fill()
})
afterAll(async () => {
  await server?.end('SIGKILL')
  await s3?.[Symbol.asyncDispose]()
})

async function createDatabase() {
  const name = `contents_${crypto.randomUUID().replaceAll('-', '')}`
  await queryDatabase(databaseUrl!, `create database ${name}`)
  return Object.assign(new URL(databaseUrl!), { pathname: `/${name}` }).href
}

/** Gives the tenant files, a site, and a connection with a secret. */
async function fill() {
  const headers = await signIn(server.url, 'acme')
  for (const [name, body] of Object.entries(FILES)) {
    const response = await fetch(`${server.url}/api/files?keep=true&name=${name}`, { method: 'POST', headers, body })
    expect(response.status).toBe(201)
  }
  const deployed = await fetch(`${server.url}/api/sites`, {
    method: 'PUT',
    headers: { ...headers, 'content-type': 'application/x-tar' },
    body: await packTar(['index.html', PAGE], ['assets/logo.svg', '<svg/>']),
  })
  expect(deployed.status).toBe(201)
  const connection = { name: 'Cards', kind: 'stripe', authentication: { secretKey: 'sk_live_1' } }
  expect((await apiCaller(server.url, headers)('POST', '/api/integration-sources', connection)).status).toBe(201)
}

const operator = (method: string, path: string, body?: object) =>
  apiCaller(server.url, { authorization: `Bearer ${TOKEN}` })(method, `/operator${path}`, body)

/** Runs a task of the operator to its end, and returns its result. */
async function run(path: string, body?: object) {
  const started = await operator('POST', path, body)
  expect([200, 202], JSON.stringify(started.body)).toContain(started.status)
  const read = async () => (await operator('GET', `/tasks/${started.body._id}`)).body
  const task = await waitUntil(read, ({ status }) => status !== 'running', 60_000)
  expect([task.status, task.problem]).toEqual(['succeeded', null])
  return task.result
}

/** Returns what the files and the site of a tenant contain: the status of the answer where a content is missing. */
async function readContents(tenant: string) {
  const headers = await signIn(server.url, tenant)
  const files = (await apiCaller(server.url, headers)('GET', '/api/files')).body as { name: string; url: string }[]
  const contents = await Promise.all(files.map(async ({ name, url }) => [name, await readText(url, headers)] as const))
  expect((await operator('PUT', `/tenants/${tenant}/hosts`, { hosts: [`${tenant}.test`] })).status).toBe(200)
  const host = { host: `${tenant}.test` }
  return {
    files: Object.fromEntries(contents),
    page: await readText('/', { ...host, 'accept-encoding': 'br' }),
    plainPage: await readText('/', { ...host, 'accept-encoding': 'identity' }),
    logo: await readText('/assets/logo.svg', host),
  }
}

async function readText(path: string, headers: Record<string, string>) {
  const response = await fetch(`${server.url}${path}`, { headers })
  return response.status === 200 ? response.text() : response.status
}

const WHOLE = { files: FILES, page: PAGE, plainPage: PAGE, logo: '<svg/>' }

const listKeys = async (tenant: string) =>
  ((await store.list({ prefix: `contents/${tenant}/` })).contents ?? []).map(({ key }) => key)

describe('a tenant whose contents are in a store of S3', () => {
  test.each([false, true])(
    'a clone has the files and the site of the tenant (without secrets: %p)',
    async (withoutSecrets) => {
      const as = withoutSecrets ? 'bare' : 'copy'
      const { files, omittedSecrets } = await run('/tenants/acme/clone', { as, withoutSecrets })
      expect(files).toEqual({ count: (await listKeys('acme')).length, missing: [] })
      expect(omittedSecrets).toEqual(withoutSecrets ? [expect.stringContaining('connection')] : [])
      expect(await readContents(as)).toEqual(WHOLE)
      expect((await listKeys(as)).length).toBe((await listKeys('acme')).length)
    },
  )

  test('a backup is restored under another id with the files and the site', async () => {
    const { place, files } = await run('/tenants/acme/backups')
    expect(files).toMatchObject({ missing: [] })
    const restored = await run('/tenants/acme/restore', { backup: place.split('/').at(-1), as: 'again' })
    expect(restored.files).toEqual({ count: files.count, missing: [] })
    expect(await readContents('again')).toEqual(WHOLE)
  })

  test('a restore in place of the tenant brings the contents back that its store lost', async () => {
    const { place } = await run('/tenants/acme/backups')
    for (const key of await listKeys('acme')) await store.delete(key)
    const path = '/tenants/acme/restore?confirm=acme'
    expect((await run(path, { backup: place.split('/').at(-1) })).files.missing).toEqual([])
    expect(await readContents('acme')).toEqual(WHOLE)
  })

  test('`doctor --deep` names a content of the site that the store lacks', async () => {
    const check = async () => {
      const { code, json } = await runAtoll('doctor --deep --json', at)
      return [code, json.checks.find(({ check }: { check: string }) => check === 'tenant acme')]
    }
    expect(await check()).toEqual([0, expect.objectContaining({ ok: true })])
    const key = `contents/acme/${sha256Of(PAGE)}`
    await store.delete(key)
    const message = expect.stringContaining('missing or damaged: index.html of the site.')
    expect(await check()).toEqual([1, expect.objectContaining({ ok: false, message })])
    await store.write(key, PAGE)
  })

  test.skipIf(!databaseUrl)('a move to the other engine and back keeps the files and the site', async () => {
    const keys = await listKeys('acme')
    for (const to of ['sqlite', 'postgres']) {
      expect((await run('/tenants/acme/move', { to })).to.startsWith(to === 'sqlite' ? 'sqlite' : 'main')).toBeTrue()
      expect(await readContents('acme')).toEqual(WHOLE)
    }
    expect(await listKeys('acme')).toEqual(keys)
  })

  test('a deletion leaves the contents of copies', async () => {
    await run('/tenants/acme/clone', { as: 'heir' })
    expect((await operator('DELETE', '/tenants/acme?confirm=acme')).status).toBe(200)
    expect(await readContents('heir')).toEqual(WHOLE)
  })
})

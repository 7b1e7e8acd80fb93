import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, type RunOptions, signIn, startAtoll } from '../../fakes/cli'
import { databaseUrl } from '../../storage/engines'
import { waitUntil } from '../../wait-until'

setDefaultTimeout(60_000)

const PATH = '/api/blueprints/things/entities'

const runOptions = (): RunOptions => ({
  at: createTempFolder(),
  env: databaseUrl ? { ATOLL_DATABASE_URL: databaseUrl } : {},
})
const createTenant = async (at: RunOptions) => {
  const id = `crash-${crypto.randomUUID().slice(0, 8)}`
  await createTenantByCli(at, id)
  return id
}

/** Starts an atomic import without an end that changes an entity and creates 500 others; `response` is its end. */
async function startEndlessImport(url: string, headers: Record<string, string>) {
  const call = apiCaller(url, headers)
  const fields = [{ key: 'title', type: 'string' }]
  await call('POST', '/api/blueprints', { key: 'things', name: 'Things', fields })
  await call('POST', PATH, { identifier: 'old', title: 'before' })
  let sent = 0
  const endless = new ReadableStream({
    async pull(controller) {
      if (sent) await Bun.sleep(2)
      const lines = Array.from({ length: 100 }, (_, n) => `{"identifier":"i${sent * 100 + n}","title":"x"}\n`)
      controller.enqueue(Buffer.from(`{"identifier":"old","title":"after"}\n${lines.join('')}`))
      sent++
    },
  })
  const address = `${url}${PATH}/import?format=ndjson&mode=upsert&atomic=true`
  const response = fetch(address, { method: 'POST', headers, body: endless }).catch((error: Error) => error)
  await waitUntil(
    () => countThings(url, headers),
    (count) => count >= 500,
  )
  return { response }
}

async function countThings(url: string, headers: Record<string, string>, filter = '') {
  const answer = await apiCaller(url, headers)('GET', `${PATH}?$count=true&$limit=1${filter}`)
  return Number(answer.headers.get('x-total-count'))
}

async function expectStateBefore(url: string, headers: Record<string, string>) {
  const { body, headers: listHeaders } = await apiCaller(url, headers)('GET', `${PATH}?$count=true`)
  expect(listHeaders.get('x-total-count')).toBe('1')
  expect(body.map(({ identifier, title }: Record<string, string>) => [identifier, title])).toEqual([['old', 'before']])
  expect(await countThings(url, headers, '&title=x')).toBe(0)
}

test('an atomic import leaves nothing behind when the server is killed by SIGKILL', async () => {
  const at = runOptions()
  const id = await createTenant(at)
  let headers: Record<string, string>
  {
    await using server = await startAtoll(at)
    headers = await signIn(server.url, id)
    const { response } = await startEndlessImport(server.url, headers)
    await server.end('SIGKILL')
    expect(await response).toBeInstanceOf(Error)
  }
  await using server = await startAtoll(at)
  await expectStateBefore(server.url, headers)
})

describe.skipIf(!databaseUrl)('two servers on one database', () => {
  test('an atomic import goes on while another server reads, and is undone by it when its own server is killed', async () => {
    const [at, elsewhere] = [runOptions(), runOptions()]
    const id = await createTenant(at)
    await using server = await startAtoll(at)
    await using other = await startAtoll(elsewhere)
    const headers = await signIn(server.url, id)
    const { response } = await startEndlessImport(server.url, headers)
    const seen = await countThings(other.url, headers)
    expect(seen).toBeGreaterThan(1)
    // Meanwhile, the other server looks more than once whether the import is abandoned.
    await waitUntil(
      () => countThings(other.url, headers),
      (count) => count > seen + 3_000,
      30_000,
    )
    await server.end('SIGKILL')
    expect(await response).toBeInstanceOf(Error)
    // The lease of the import would end only after 20 s.
    await waitUntil(
      () => countThings(other.url, headers),
      (count) => count === 1,
    )
    await expectStateBefore(other.url, headers)
  })
})

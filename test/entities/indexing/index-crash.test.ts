import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, type RunOptions, signIn, startAtoll } from '../../fakes/cli'
import { databaseUrl } from '../../storage/engines'
import { waitUntil } from '../../wait-until'

setDefaultTimeout(120_000)

const PATH = '/api/blueprints/things/entities'
const THINGS = 30_000

const runOptions = (): RunOptions => ({
  at: createTempFolder(),
  env: { ATOLL_RATE_LIMITS: 'off', ...(databaseUrl && { ATOLL_DATABASE_URL: databaseUrl }) },
})

type Call = ReturnType<typeof apiCaller>

async function createThings(call: Call, url: string, headers: Record<string, string>) {
  await call('POST', '/api/blueprints', { key: 'things', name: 'Things', fields: [{ key: 'n', type: 'integer' }] })
  const lines = Array.from({ length: THINGS }, (_, n) => `{"n":${n % 100}}`).join('\n')
  const answer = await fetch(`${url}${PATH}/import?format=ndjson`, { method: 'POST', headers, body: lines })
  expect(await answer.json()).toMatchObject({ imported: THINGS, failed: 0 })
}

const readState = async (call: Call) => (await call('GET', '/api/blueprints/things/indexes')).body[0]?.state
const countSevens = async (call: Call) =>
  Number((await call('GET', `${PATH}?n=7&$count=true&$limit=1`)).headers.get('x-total-count'))
const isReady = (state: string) => state === 'ready'

test('an index goes on being built after SIGKILL, and then has every entity once', async () => {
  const at = runOptions()
  const id = `index-${crypto.randomUUID().slice(0, 8)}`
  await createTenantByCli(at, id)
  let headers: Record<string, string>
  {
    await using server = await startAtoll(at)
    headers = await signIn(server.url, id)
    const call = apiCaller(server.url, headers)
    await createThings(call, server.url, headers)
    expect(await countSevens(call)).toBe(THINGS / 100)
    await waitUntil(() => readState(call))
    await server.end('SIGKILL')
  }
  await using server = await startAtoll(at)
  const call = apiCaller(server.url, headers)
  for (let state = ''; !isReady(state); state = await readState(call))
    expect(await countSevens(call)).toBe(THINGS / 100)
  expect(await countSevens(call)).toBe(THINGS / 100)
  const { body } = await call('GET', `${PATH}?$explain=true&n=7`)
  expect(body).toMatchObject({ driver: { by: 'value', of: 'n in' }, indexes: [{ field: 'n', state: 'ready' }] })
})

describe.skipIf(!databaseUrl)('two servers on one database', () => {
  test('entities that one server writes while the other builds an index are found by it', async () => {
    const [at, elsewhere] = [runOptions(), runOptions()]
    const id = `index-${crypto.randomUUID().slice(0, 8)}`
    await createTenantByCli(at, id)
    await using server = await startAtoll(at)
    await using other = await startAtoll(elsewhere)
    const headers = await signIn(server.url, id)
    const [call, callOther] = [apiCaller(server.url, headers), apiCaller(other.url, headers)]
    await createThings(call, server.url, headers)
    expect(await countSevens(callOther)).toBe(THINGS / 100)
    let written = 0
    const isBuilt = waitUntil(() => readState(call), isReady, 60_000)
    let over = false
    void isBuilt.finally(() => {
      over = true
    })
    while (!over) {
      const answers = await Promise.all([1, 2, 3, 4].map(() => callOther('POST', PATH, { n: 7 })))
      expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201])
      written += answers.length
    }
    expect(written).toBeGreaterThan(0)
    expect([await countSevens(call), await countSevens(callOther)]).toEqual([
      THINGS / 100 + written,
      THINGS / 100 + written,
    ])
  })
})

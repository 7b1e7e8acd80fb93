import { expect, setDefaultTimeout, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, type RunningAtoll, signIn, startAtoll } from '../../fakes/cli'
import { waitUntil } from '../../wait-until'

setDefaultTimeout(120_000)

const ENTITY_COUNT = 6_000
const BLUEPRINT_PATH = '/api/blueprints/things'
const path = `${BLUEPRINT_PATH}/entities`

test('an alteration of entities resumes after SIGKILL of the server, and lists and counts stay consistent meanwhile', async () => {
  const database = process.env.TEST_DATABASE_URL
  const at = { at: createTempFolder(), ...(database && { env: { ATOLL_DATABASE_URL: database } }) }
  const tenant = `t${crypto.randomUUID()}`
  await createTenantByCli(at, tenant)
  let headers: Record<string, string> = {}
  const client = (server: RunningAtoll) => apiCaller(server.url, headers)
  const fields = [
    { key: 'title', type: 'string' },
    { key: 'size', type: 'string' },
  ]
  const changed = [
    { key: 'name', type: 'text', renamedFrom: 'title', unique: true },
    { key: 'size', type: 'decimal' },
    { key: 'state', type: 'string', required: true, default: 'new' },
  ]
  const stateOf = async (server: RunningAtoll) => (await client(server)('GET', BLUEPRINT_PATH)).body.alteration
  const total = async (server: RunningAtoll, query: string) => {
    const answer = await client(server)('GET', `${path}?${query}&$count=true&$limit=1`)
    return answer.status === 200 ? Number(answer.headers.get('x-total-count')) : answer.status
  }
  /** Returns whether the new fields are in force, and expects that all entities answer by the fields in force. */
  const expectConsistency = async (server: RunningAtoll) => {
    const { body: blueprint } = await client(server)('GET', BLUEPRINT_PATH)
    const isNew = blueprint.fields.some(({ key }: { key: string }) => key === 'name')
    // As decimals, ten sizes are less than 10.5; as texts, only "1" and "10" are.
    const [sorted, count] = ['$sort=size&size[$lt]=10.5', isNew ? 10 : 2]
    const { body } = await client(server)('GET', `${path}?${sorted}&$limit=1000`)
    const found = await total(server, isNew ? 'state=new' : 'title=t17')
    const { body: again } = await client(server)('GET', BLUEPRINT_PATH)
    // The change came into force between the reads.
    if (JSON.stringify(again.fields) !== JSON.stringify(blueprint.fields)) return isNew
    expect(new Set(body.map(({ size }: { size: string }) => size)).size).toBe(count)
    expect(Object.keys(body[0].metadata).sort()).toEqual(isNew ? ['name', 'size', 'state'] : ['size', 'title'])
    expect(found).toBe(isNew ? ENTITY_COUNT : 1)
    return isNew
  }
  {
    await using server = await startAtoll(at)
    headers = await signIn(server.url, tenant)
    await client(server)('POST', '/api/blueprints', { key: 'things', name: 'Things', fields })
    const lines = Array.from({ length: ENTITY_COUNT }, (_, n) =>
      JSON.stringify({ identifier: `i${n}`, title: `t${n}`, size: `${1 + (n % 100)}` }),
    )
    const imported = await fetch(`${server.url}${path}/import?format=ndjson`, {
      method: 'POST',
      headers,
      body: lines.join('\n'),
    })
    expect(await imported.json()).toMatchObject({ imported: ENTITY_COUNT, failed: 0 })
    const change = client(server)('PUT', BLUEPRINT_PATH, { fields: changed }).catch((error: Error) => error)
    while (!((await stateOf(server))?.done > 0)) await Bun.sleep(1)
    await server.end('SIGKILL')
    expect(await change).toBeInstanceOf(Error)
  }
  // The next server is killed while it cleans up, and the one after that when the alteration is over.
  for (const state of ['cleaning', undefined]) {
    await using server = await startAtoll(at)
    for (;;) {
      await expectConsistency(server)
      await Bun.sleep(10)
      const now = await stateOf(server)
      if (!now || now.state === state) break
    }
    await server.end('SIGKILL')
  }
  await using server = await startAtoll(at)
  while (await stateOf(server)) await Bun.sleep(20)
  expect(await expectConsistency(server)).toBeTrue()
  expect(await total(server, 'name=t17')).toBe(1)
  const { status } = await client(server)('POST', path, { name: 't17', size: '1' })
  expect(status).toBe(409)
  // The first search may be busy for a while.
  expect(
    await waitUntil(
      () => total(server, '$q=t4711'),
      (found) => found !== 503,
    ),
  ).toBe(1)
})

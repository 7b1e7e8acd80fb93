import { expect, setDefaultTimeout, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, type RunOptions, signIn, startAtoll } from '../../fakes/cli'
import { databaseUrl } from '../../storage/engines'

setDefaultTimeout(120_000)

const PATH = '/api/blueprints/things/entities'
const WRITERS = 32
const THINGS = 8 // several writers change each of them
const fields = [
  { key: 'n', type: 'integer' },
  { key: 'by', type: 'string', indexed: true },
]

type Acknowledged = { identifier: string; n: number; by: string; updated: string }
type Call = ReturnType<typeof apiCaller>
type Shown = { version: number; at: string; changes: Record<string, { from: unknown; to: unknown }>; entity: Thing }
type Thing = { metadata: { n?: number; by?: string } }

/** Changes things by many writers, who ask these servers in turn, until none answers. */
async function changeUntilKilled(calls: Call[], round: number, acknowledged: Acknowledged[]) {
  const writer = async (_: unknown, own: number) => {
    for (let step = 0; ; step++) {
      const identifier = `t${(own + step) % THINGS}`
      const change = { n: step, by: `${round}.${own}.${step}` }
      const call = calls[own % calls.length]!
      const answer = await call('PUT', `${PATH}/${identifier}`, change).catch(() => undefined)
      if (!answer) return
      if (answer.status === 503) continue
      expect(answer.status, JSON.stringify(answer.body)).toBe(200)
      acknowledged.push({ identifier, ...change, updated: answer.body.updated })
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, writer))
}

/** Reads all versions of a thing, the latest first. */
async function readVersions(call: Call, identifier: string): Promise<Shown[]> {
  const versions: Shown[] = []
  for (let after = ''; ; ) {
    const { body } = await call('GET', `${PATH}/${identifier}/history?$entity=true&$limit=100${after}`)
    versions.push(...body)
    if (body.length < 100) return versions
    after = `&$after=${versions.at(-1)!.version}`
  }
}

/** Asserts that the versions of a thing lead from its creation to what it is, each beginning where the one before ended. */
async function expectCompleteChain(call: Call, identifier: string, acknowledged: Acknowledged[]) {
  const versions = await readVersions(call, identifier)
  expect(versions.map(({ version }) => version)).toEqual(versions.map((_, at) => versions.length - at))
  const { body } = await call('GET', `${PATH}/${identifier}`)
  expect(body.metadata).toEqual(versions[0]!.entity.metadata)
  for (const [at, { changes, entity }] of versions.entries()) {
    const [now, before] = [entity.metadata, versions[at + 1]?.entity.metadata ?? {}]
    for (const key of ['n', 'by'] as const) {
      const [from, to] = [before[key] ?? null, now[key] ?? null]
      expect(changes[key]).toEqual(from === to ? undefined : { from, to })
    }
  }
  const seen = new Map(versions.map((version) => [version.entity.metadata.by, version]))
  for (const { by, n, updated } of acknowledged) {
    const version = seen.get(by)
    expect([version?.entity.metadata.n, version?.at], by).toEqual([n, updated])
  }
  // Of the changes of a millisecond, the last one is what the thing was as of then.
  const latest = new Map(versions.toReversed().map(({ at, entity }) => [at, entity.metadata]))
  for (const { updated } of acknowledged.slice(-40)) {
    const asOf = await call('GET', `${PATH}/${identifier}?$asOf=${updated}`)
    expect([asOf.status, asOf.body.metadata]).toEqual([200, latest.get(updated)])
  }
  const middle = acknowledged[acknowledged.length >> 1]!.updated
  const list = await call('GET', `${PATH}?$asOf=${middle}&by=${latest.get(middle)!.by}`)
  expect(list.body.map((one: { identifier: string }) => one.identifier)).toEqual([identifier])
}

test('every acknowledged change survives `kill -9` as a version, and the versions of an entity stay complete', async () => {
  const database = databaseUrl && { ATOLL_DATABASE_URL: databaseUrl }
  const at: RunOptions = { at: createTempFolder(), env: { ATOLL_RATE_LIMITS: 'off', ...database } }
  const id = `chains-${crypto.randomUUID().slice(0, 8)}`
  await createTenantByCli(at, id)
  {
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, id))
    const made = await call('POST', '/api/blueprints', {
      ...{ key: 'things', name: 'Things', fields, history: { versions: 1_000 } },
    })
    expect(made.status).toBe(201)
    for (let n = 0; n < THINGS; n++)
      expect((await call('POST', PATH, { identifier: `t${n}`, by: 'creation' })).status).toBe(201)
  }
  const acknowledged: Acknowledged[] = []
  for (let round = 0; round < 3; round++) {
    {
      await using server = await startAtoll(at)
      // Only servers that share a database may change the same tenant at once.
      await using other = databaseUrl ? await startAtoll(at) : undefined
      const headers = await signIn(server.url, id)
      const calls = [server, ...(other ? [other] : [])].map(({ url }) => apiCaller(url, headers))
      const before = acknowledged.length
      const changing = changeUntilKilled(calls, round, acknowledged)
      while (acknowledged.length < before + 100) await Bun.sleep(5)
      await Bun.sleep(Math.random() * 500)
      for (const { pid } of [server, ...(other ? [other] : [])]) process.kill(pid, 'SIGKILL')
      await Promise.all([server.exited, other?.exited, changing])
    }
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, id))
    const byThing = Map.groupBy(acknowledged, ({ identifier }) => identifier)
    await Promise.all([...byThing].map(([identifier, of]) => expectCompleteChain(call, identifier, of)))
  }
})

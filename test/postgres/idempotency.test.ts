import { describe, expect, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { databaseUrl } from '../storage/engines'

const env = { ATOLL_DATABASE_URL: databaseUrl ?? '' }

describe.skipIf(!databaseUrl)('Idempotency-Key on two servers', () => {
  test('concurrent requests with one Idempotency-Key on two servers create one entity and get the same answer', async () => {
    const [one, two] = [
      { at: createTempFolder(), env },
      { at: createTempFolder(), env },
    ]
    const id = `once-${crypto.randomUUID().slice(0, 8)}`
    await createTenantByCli(one, id)
    await using first = await startAtoll(one)
    await using second = await startAtoll(two)
    const headers = await signIn(first.url, id)
    const fields = [{ key: 'name', type: 'string' }]
    await apiCaller(first.url, headers)('POST', '/api/blueprints', { key: 'things', name: 'Things', fields })
    const path = '/api/blueprints/things/entities'
    const rounds = 12
    for (let round = 0; round < rounds; round++) {
      const same = { ...headers, 'idempotency-key': `round-${round}` }
      const callers = [first, second, first, second].map(({ url }) => apiCaller(url, same))
      const answers = await Promise.all(callers.map((ask) => ask('POST', path, { name: `${round}` })))
      expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201])
      expect(new Set(answers.map(({ body }) => body._id)).size).toBe(1)
    }
    const counted = await apiCaller(second.url, headers)('GET', `${path}?$count=true&$limit=1`)
    expect(counted.headers.get('x-total-count')).toBe(`${rounds}`)
  }, 30_000)
})

import { expect, test } from 'bun:test'
import { createTestTenant } from '../test-tenant'

const LARGE = 'x'.repeat(100_000)
const COUNT = 60

/** Follows the pages of a list, and returns their sizes and the ids in them. */
async function readPages(read: (path: string) => Promise<{ body: { _id: string }[]; headers: Headers }>, path: string) {
  const [sizes, ids]: [number[], string[]] = [[], []]
  for (let next: string | undefined = path; next; ) {
    const { body, headers } = await read(next)
    sizes.push(JSON.stringify(body).length)
    ids.push(...body.map(({ _id }) => _id))
    next = headers.get('link')?.match(/<\/api([^>]*)>; rel="next"/)?.[1]
  }
  return { sizes, ids }
}

test('a page of large integrations or threads ends at 4 MiB, and Link leads to the others', async () => {
  const { as, tenant, users } = await createTestTenant()
  const admin = as('admin')
  const target = { kind: 'ai', sourceId: 'echo', systemPrompt: LARGE }
  const integration = { name: 'Large', trigger: { kind: 'chat' }, target }
  for (let n = 0; n < COUNT; n++) expect((await admin.post('/integrations', integration)).status).toBe(201)
  const summaries = JSON.stringify([{ content: LARGE, upTo: 1, created: '2030-01-01T00:00:00.000Z' }])
  await tenant.write((tx) =>
    tx.executeMany(
      `insert into threads (_id, integration, title, summaries, "user", workspace, created, updated)
       values (?, 'any', null, ?, ?, null, 0, 0)`,
      Array.from({ length: COUNT }, () => [Bun.randomUUIDv7(), summaries, users.admin]),
    ),
  )
  for (const path of ['/integrations?limit=1000', '/ai/threads?limit=1000', '/integrations?limit=1000&sort=name']) {
    const { sizes, ids } = await readPages(admin.get, path)
    expect(sizes.length, path).toBeGreaterThan(1)
    expect(Math.max(...sizes), path).toBeLessThan(4.2 * 2 ** 20)
    expect([ids.length, new Set(ids).size], path).toEqual([COUNT, COUNT])
  }
})

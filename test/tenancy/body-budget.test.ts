import { expect, test } from 'bun:test'
import { releaseBody, reserveBody } from '../../src/tenancy/body-budget'
import { createTestTenant, statusAndCode } from '../test-tenant'

const MIB = 1 << 20
const newRequest = () => new Request('http://a.test/')
const tryReserve = (incoming: Request, tenant: string, bytes: number) => {
  try {
    reserveBody(incoming, tenant, bytes)
    return 'taken'
  } catch (error) {
    return (error as { status: number }).status
  }
}

test('a tenant has 32 MiB of large bodies under way at most, and all tenants 128 MiB', () => {
  const held: Request[] = []
  const hold = (tenant: string, mib: number) => {
    const asked = newRequest()
    held.push(asked)
    return tryReserve(asked, tenant, mib * MIB)
  }
  expect([hold('a', 16), hold('a', 16), hold('a', 2), hold('a', 1)]).toEqual(['taken', 'taken', 503, 'taken'])
  expect([hold('b', 32), hold('c', 32), hold('d', 31), hold('e', 2)]).toEqual(['taken', 'taken', 'taken', 503])
  // A body of which more has come in counts once.
  expect([tryReserve(held[0]!, 'a', 16 * MIB), hold('e', 2)]).toEqual(['taken', 503])
  releaseBody(held[0]!)
  expect([hold('e', 2), hold('a', 14), hold('a', 4)]).toEqual(['taken', 'taken', 503])
  for (const asked of held) releaseBody(asked)
  expect([hold('a', 32), hold('b', 32)]).toEqual(['taken', 'taken'])
  for (const asked of held) releaseBody(asked)
})

test('bodies are counted until they are answered: many in a row are taken, too many at once are 503 BUSY', async () => {
  const admin = (await createTestTenant()).as('admin')
  const chat = { messages: [{ role: 'user', content: 'x'.repeat(3 * MIB) }] }
  const length = { 'content-length': `${JSON.stringify(chat).length}` }
  const send = () => admin.post('/ai/agents/none/chat', chat, length)
  for (let n = 0; n < 12; n++) expect(statusAndCode(await send())[0]).not.toBe(503)
  const statuses = (await Promise.all(Array.from({ length: 14 }, send))).map(({ status }) => status)
  expect(statuses.filter((status) => status === 503)).toHaveLength(4)
  // Of unannounced length each counts as the 4 MiB that may come.
  const streamed = await Promise.all(Array.from({ length: 10 }, () => admin.post('/ai/agents/none/chat', chat)))
  expect(streamed.filter(({ status }) => status === 503)).toHaveLength(2)
})

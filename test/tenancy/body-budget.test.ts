import { expect, test } from 'bun:test'
import { releaseBody, reserveBody } from '../../src/tenancy/body-budget'
import { createTestTenant, statusAndCode } from '../test-tenant'

const MIB = 1 << 20
const newRequest = () => new Request('http://a.test/')
const tryReserve = (incoming: Request, tenant: string, bytes: number) => {
  try {
    reserveBody(incoming, tenant, bytes)
    return 'reserved'
  } catch (error) {
    return (error as { status: number }).status
  }
}

test('a tenant can reserve 32 MiB for large bodies and all tenants 128 MiB; more is refused with 503', () => {
  const held: Request[] = []
  const hold = (tenant: string, mib: number) => {
    const request = newRequest()
    held.push(request)
    return tryReserve(request, tenant, mib * MIB)
  }
  expect([hold('a', 16), hold('a', 16), hold('a', 2), hold('a', 1)]).toEqual(['reserved', 'reserved', 503, 'reserved'])
  expect([hold('b', 32), hold('c', 32), hold('d', 31), hold('e', 2)]).toEqual(['reserved', 'reserved', 'reserved', 503])
  // A growing body counts once.
  expect([tryReserve(held[0]!, 'a', 16 * MIB), hold('e', 2)]).toEqual(['reserved', 503])
  releaseBody(held[0]!)
  expect([hold('e', 2), hold('a', 14), hold('a', 4)]).toEqual(['reserved', 'reserved', 503])
  for (const request of held) releaseBody(request)
  expect([hold('a', 32), hold('b', 32)]).toEqual(['reserved', 'reserved'])
  for (const request of held) releaseBody(request)
})

test('large bodies count until they are answered: 12 in a row are accepted, and 4 of 14 at once get 503', async () => {
  const admin = (await createTestTenant()).as('admin')
  const chat = { messages: [{ role: 'user', content: 'x'.repeat(3 * MIB) }] }
  const length = { 'content-length': `${JSON.stringify(chat).length}` }
  const send = () => admin.post('/ai/agents/none/chat', chat, length)
  for (let n = 0; n < 12; n++) expect(statusAndCode(await send())[0]).not.toBe(503)
  const statuses = (await Promise.all(Array.from({ length: 14 }, send))).map(({ status }) => status)
  expect(statuses.filter((status) => status === 503)).toHaveLength(4)
  // A body without Content-Length counts as the 4 MiB that it may have.
  const streamed = await Promise.all(Array.from({ length: 10 }, () => admin.post('/ai/agents/none/chat', chat)))
  expect(streamed.filter(({ status }) => status === 503)).toHaveLength(2)
})

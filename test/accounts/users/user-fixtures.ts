import { expect } from 'bun:test'
import type { ApiClient, createTestTenant } from '../../test-tenant'

export const LAST_ADMIN = [409, 'LAST_ADMIN']

type TestTenant = Pick<Awaited<ReturnType<typeof createTestTenant>>, 'as'>

/** Creates a user as an admin. */
export async function createUser({ as }: TestTenant, body: { username: string } & Record<string, unknown>) {
  const answer = await as('admin').post('/users', body)
  expect([answer.status, answer.body.message]).toEqual([201, undefined])
  return answer.body
}

type Event = {
  source: string
  kind: string
  eventName: string
  user: string | null
  workspace: string | null
  metadata: Record<string, unknown>
}

/** Lists the events of a tenant, oldest first. */
export async function listEvents({ as }: TestTenant, query: string): Promise<Event[]> {
  const { body } = await as('admin').get(`/events?limit=1000&${query}`)
  return body.reverse()
}

export const toUsernames = (body: { username: string }[]) => body.map(({ username }) => username)

/** Returns the client with headers that impersonate a user. */
export const actAs = (client: ApiClient, user: string, workspace?: string) =>
  client.with({ 'x-impersonate-user': user, ...(workspace && { 'x-impersonate-workspace': workspace }) })

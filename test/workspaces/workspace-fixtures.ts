import { expect } from 'bun:test'
import { now, toIsoString } from '../../src/core/clock'
import { configurations } from '../../src/platform/settings/tables'
import { writeInvalidating } from '../../src/tenancy/cache'
import type { Tenant } from '../../src/tenancy/tenants'
import { type ApiClient, createTestTenant } from '../test-tenant'

/** Creates a workspace as this client. */
export async function createWorkspace(client: ApiClient, body: object = {}) {
  const answer = await client.post('/workspaces', { name: 'Office', ...body })
  expect([answer.status, answer.body.message]).toEqual([201, undefined])
  return answer.body
}

/**
 * Creates a tenant with a workspace in which `user` is the admin and `other` a member. `editor` is the admin of another
 * workspace; `admin` is a member of none.
 */
export async function createWorkspaceFixture(body: object = {}) {
  const own = await createTestTenant()
  const workspace = await createWorkspace(own.as('user'), body)
  const elsewhere = await createWorkspace(own.as('editor'), { name: 'Elsewhere' })
  const at = `/workspaces/${workspace._id}`
  const added = await own.as('user').post(`${at}/members`, { userId: own.users.other, roles: ['member'] })
  expect(added.status).toBe(201)
  return { ...own, id: own.id, workspace: workspace._id as string, elsewhere: elsewhere._id as string, at }
}
export type WorkspaceFixture = Awaited<ReturnType<typeof createWorkspaceFixture>>

/** Sets a configuration of a tenant. */
export async function setConfiguration(tenant: Tenant, key: string, metadata: Record<string, unknown>) {
  const time = toIsoString(now())
  const row = { _id: Bun.randomUUIDv7(), key, public: false, kind: '', description: '', created: time, updated: time }
  await writeInvalidating(tenant, 'configurations', (tx) =>
    tx
      .insert(configurations)
      .values({ ...row, metadata })
      .onConflictDoUpdate({ target: configurations.key, set: { metadata } })
      .run(),
  )
}

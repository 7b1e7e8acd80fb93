import { expect } from 'bun:test'
import { configurations } from '../../../src/accounts/settings/tables'
import { iso, now } from '../../../src/core/clock'
import { changing } from '../../../src/tenancy/memory'
import type { Tenant } from '../../../src/tenancy/tenants'
import { type Client, house } from '../../house'

export const FORBIDDEN = [403, 'FORBIDDEN']
export const GONE = [404, 'WORKSPACE_NOT_FOUND']
export const ID = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/)
export const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

/** A new workspace of somebody's. */
export async function made(by: Client, body: object = {}) {
  const answer = await by.post('/workspaces', { name: 'Office', ...body })
  expect([answer.status, answer.body.message]).toEqual([201, undefined])
  return answer.body
}

/**
 * A tenant with a workspace that the user administers and the other is a plain member of. The editor administers another
 * one, the admin is in none.
 */
export async function office(body: object = {}) {
  const own = await house()
  const workspace = await made(own.as('user'), body)
  const elsewhere = await made(own.as('editor'), { name: 'Elsewhere' })
  const at = `/workspaces/${workspace._id}`
  const added = await own.as('user').post(`${at}/members`, { userId: own.users.other, roles: ['member'] })
  expect(added.status).toBe(201)
  return { ...own, id: own.id, workspace: workspace._id as string, elsewhere: elsewhere._id as string, at }
}
export type Office = Awaited<ReturnType<typeof office>>

/** Sets a configuration of a tenant. */
export async function configure(tenant: Tenant, key: string, metadata: Record<string, unknown>) {
  const time = iso(now())
  const row = { _id: Bun.randomUUIDv7(), key, public: false, kind: '', description: '', created: time, updated: time }
  await changing(tenant, 'configurations', (tx) =>
    tx
      .insert(configurations)
      .values({ ...row, metadata })
      .onConflictDoUpdate({ target: configurations.key, set: { metadata } })
      .run(),
  )
}

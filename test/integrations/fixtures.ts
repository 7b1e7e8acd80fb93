import { runDueJobs } from '../../src/jobs/runner'
import type { Tenant } from '../../src/tenancy/tenants'
import { type ApiClient, createTestTenant } from '../test-tenant'

/** Creates a tenant with shortcuts to create integrations as its admin. */
export async function createIntegrationsFixture() {
  const testTenant = await createTestTenant()
  const admin = testTenant.as('admin')
  const create = async (path: string, body: object) => {
    const answer = await admin.post(path, body)
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
    return answer.body
  }
  const lambda = async (code: string, more: object = {}): Promise<string> =>
    (await create('/lambdas', { name: 'l', code: `export default ${code}`, ...more }))._id
  return {
    ...testTenant,
    admin,
    lambda,
    integration: (trigger: object, target: object, more: object = {}) =>
      create('/integrations', { trigger, target, ...more }),
    /** Creates a webhook that runs this code, and returns its path. */
    webhook: async (code: string, more: object = {}): Promise<string> => {
      const target = { kind: 'lambda', lambdaId: await lambda(code) }
      return `/webhooks/${(await create('/integrations', { trigger: { kind: 'webhook' }, target, ...more }))._id}`
    },
    source: async (kind: string, metadata: object, authentication: object = {}): Promise<string> =>
      (await create('/integration-sources', { name: kind, kind, metadata, authentication }))._id,
    /** Removes all integrations, so that they do not react to the next test. */
    clear: () => removeIntegrations(admin),
    due: () => runDueJobs(testTenant.tenant),
  }
}
export type IntegrationsFixture = Awaited<ReturnType<typeof createIntegrationsFixture>>

async function removeIntegrations(admin: ApiClient) {
  for (const { _id } of (await admin.get('/integrations?limit=1000')).body) await admin.delete(`/integrations/${_id}`)
}

/** Returns the queued jobs of a kind. */
export const listJobs = async ({ db }: Tenant, kind: string) =>
  (await db.query('select _id, lane, due, attempts, state from jobs where kind = ? order by seq', [kind])) as [
    string,
    string,
    number | null,
    number,
    string,
  ][]

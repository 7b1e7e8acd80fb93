import { config } from '../../src/config'
import { callApi, createTestTenant, fullAccessRules } from '../test-tenant'

export const OPERATOR_TOKEN = 'operator-of-the-quotas'

/** Sends a request of the operator. */
export function callOperator(method: string, path: string, body?: unknown) {
  config.ATOLL_OPERATOR_TOKEN = OPERATOR_TOKEN
  return callApi(method, `http://localhost/operator${path}`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    body,
  })
}

/** Sets quotas of a tenant. @throws when they are refused */
export async function setQuotas(id: string, quotas: object) {
  const { status, body } = await callOperator('PUT', `/tenants/${id}/quotas`, quotas)
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body
}

/** Creates a tenant with the blueprint `tasks` and these quotas. */
export async function createQuotaFixture(quotas: object = {}) {
  const tenant = await createTestTenant()
  const [admin, user] = [tenant.as('admin'), tenant.as('user')]
  const fields = [{ key: 'title', type: 'string' }]
  const permissions = fullAccessRules('tenant', 'user')
  await admin.post('/blueprints', { key: 'tasks', name: 'Task', fields, permissions })
  await setQuotas(tenant.id, quotas)
  const path = '/blueprints/tasks/entities'
  return {
    ...{ ...tenant, admin, user, path },
    create: (identifier?: string) => user.post(path, { identifier, title: 'A task' }),
    importLines: (lines: object[], query = '') =>
      callApi('POST', `${tenant.origin}/api${path}/import?format=ndjson${query}`, {
        raw: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
        headers: { 'x-api-key': tenant.tokens.user },
      }),
    usage: async () => (await admin.get('/quotas')).body.usage,
    listEvents: async () =>
      (await admin.get('/events?source=limits&sort=created')).body.map(
        ({ eventName, metadata }: { eventName: string; metadata: { quota: string; used: number } }) =>
          [eventName, metadata.quota, metadata.used] as const,
      ),
  }
}

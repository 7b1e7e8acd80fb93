import { listScopeWarnings } from '../accounts/api-tokens'
import { listMailLinkWarnings } from '../accounts/mail/server-address'
import { blueprints } from '../blueprints/tables'
import { listWarnings } from '../blueprints/warnings'
import { listMetadataWarnings } from '../content/metadata'
import { listIntegrationWarnings } from '../integrations/warnings'
import { configurations } from '../platform/settings/tables'
import { getTenantAnyStatus } from '../tenancy/tenants'

/**
 * Returns warnings about what a tenant probably does not intend, each with its path, such as
 * `/blueprints/books/permissions/0`.
 * @throws 404 TENANT_NOT_FOUND
 */
export async function listTenantWarnings(id: string) {
  await import('../app') // the areas provide the rules that name labels and roles
  const tenant = await getTenantAnyStatus(id)
  const all = await tenant.db.select({ key: blueprints.key, definition: blueprints.definition }).from(blueprints)
  const ofBlueprints = await Promise.all(
    all.map(async ({ key, definition }) =>
      (await listWarnings(tenant, definition)).map((warning) => ({
        ...warning,
        path: `/blueprints/${key}${warning.path}`,
      })),
    ),
  )
  const stored = await tenant.db.select().from(configurations)
  const ofConfigurations = stored.flatMap(({ key, metadata }) =>
    listMetadataWarnings(key, metadata, `/configurations/${key}/metadata`),
  )
  return [
    ...ofBlueprints.flat(),
    ...ofConfigurations,
    ...(await listIntegrationWarnings(tenant)),
    ...(await listScopeWarnings(tenant)),
    ...(await listMailLinkWarnings(tenant)),
  ]
}

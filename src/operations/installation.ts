import { Elysia, t } from 'elysia'
import { version } from '../../package.json'
import { guard } from '../accounts/guard'
import { SESSION_TTL_MS } from '../accounts/sessions'
import { config } from '../config'
import { DAY_MS } from '../core/clock'
import { listTimeZones } from '../core/time-zone'
import { describeQuotas } from '../limits/quota-overview'
import { getAllowedLimits } from '../limits/rate-limits'
import { TenantQuotas } from '../limits/shapes'
import { isMailEnabled } from '../platform/mail/smtp'
import { measureDatabase } from '../tenancy/database-size'
import { listAssignedHosts } from '../tenancy/hosts'
import { getTenantInfo } from '../tenancy/tenant-list'
import { isOutgoingHeld, type Tenant } from '../tenancy/tenants'
import { Installation } from './shapes'

/** Returns what the operator decided for a tenant, as far as its admins need to know it, and what the tenant takes. */
const describeInstallation = async ({ tenant }: Tenant): Promise<Installation> => ({
  version,
  hosts: await listAssignedHosts(tenant),
  hostClaims: config.ATOLL_HOST_CLAIMS,
  mail: { isSent: isMailEnabled(), from: config.ATOLL_MAIL_FROM },
  sessionDays: SESSION_TTL_MS / DAY_MS,
  accessTokenSeconds: config.ATOLL_ACCESS_TOKEN_TTL,
  eventDays: config.ATOLL_EVENT_RETENTION,
  rateLimits: config.ATOLL_RATE_LIMITS === 'on' ? await getAllowedLimits(tenant) : null,
  outgoingHeld: await isOutgoingHeld(tenant),
  databaseBytes: await measureDatabase(await getTenantInfo(tenant)),
})

/** What the operator decided, for the admins of a tenant, and the time zones that this server knows. */
export const installationRoutes = new Elysia({ tags: ['configurations'] })
  .use(guard('configurations'))
  .get('/installation', ({ ctx }) => describeInstallation(ctx), {
    can: 'privileged',
    response: Installation,
    detail: { operationId: 'getInstallation', summary: 'Get the limits and features of the installation' },
  })
  .get('/quotas', ({ ctx }) => describeQuotas(ctx.tenant), {
    can: 'privileged',
    response: TenantQuotas,
    detail: {
      operationId: 'getQuotas',
      summary: "Get the tenant's quotas and usage",
      description: 'The operator sets the quotas. A quota of `null` means unlimited.',
    },
  })
  .get('/time-zones', () => listTimeZones(), {
    can: 'user',
    response: t.Array(t.String()),
    detail: {
      operationId: 'listTimeZones',
      summary: 'List the time zones',
      description: 'Returns the IANA names that schedules and `timezone` accept, in alphabetical order.',
    },
  })

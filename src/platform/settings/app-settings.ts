import { t } from 'elysia'
import { timeZoneName } from '../../core/shapes'
import { findTimeZone, requireTimeZone, type TimeZone, UTC } from '../../core/time-zone'
import type { Store } from '../../storage/port'
import { defineSettings, getSettings, nameList } from './tenant-settings'

/** The name and the websites of a tenant, and the roles that write their content. */
export const appSettings = defineSettings(
  'app-configuration',
  t.Object({
    name: t.Optional(t.String({ maxLength: 200, description: 'the name of the product, as mails and pages call it' })),
    websiteUrls: t.Array(t.String({ minLength: 1, maxLength: 2_000 }), {
      ...{ maxItems: 100, default: [] },
      description:
        'URLs of the websites of the tenant: their origins may call the API, and requests to their hosts are served',
    }),
    timezone: t.Optional(
      timeZoneName('the IANA time zone of charts, sums by day and imports that name none; default: UTC'),
    ),
    contentEditors: nameList('roles that may write blocks, besides admins; empty: every signed-in user'),
  }),
)

/**
 * Returns the time zone of a request: the one that it names, else that of the tenant, else UTC.
 * @throws 400 for an unknown one that was named, with the name of the parameter
 */
export async function resolveTimeZone(
  tenant: Pick<Store, 'db' | 'remoteVersion'>,
  named: string | undefined,
  parameter = 'timezone',
): Promise<TimeZone> {
  if (named !== undefined) return requireTimeZone(named, parameter)
  // A stored name may have become unknown.
  return findTimeZone((await getSettings(tenant, appSettings)).timezone ?? '') ?? UTC
}

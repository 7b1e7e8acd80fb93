import { t } from 'elysia'
import { defineSettings, nameList } from './tenant-settings'

/** The websites of a tenant, and the roles that write their content. */
export const appSettings = defineSettings(
  'app-configuration',
  t.Object({
    websiteUrls: t.Array(t.String({ minLength: 1, maxLength: 2_000 }), {
      ...{ maxItems: 100, default: [] },
      description:
        'URLs of the websites of the tenant: their origins may call the API, and requests to their hosts are served',
    }),
    contentEditors: nameList('roles that may write blocks, besides admins; empty: every signed-in user'),
  }),
)

import { t } from 'elysia'
import { textMatching } from '../core/shapes'
import { defineSettings } from '../platform/settings/tenant-settings'

/** A URL that a browser can be redirected to: absolute, without spaces, and without user names, which look like hosts. */
export const PAGE_URL_PATTERN = '^https?://[^\\s\\u0000-\\u001f/?#@\\\\]+([/?#][^\\s\\u0000-\\u001f]*)?$'
const pageUrl = (description: string) =>
  t.Optional(
    textMatching(PAGE_URL_PATTERN, 'Use an absolute URL, such as https://app.example.com/paid.', {
      maxLength: 2_000,
      description,
    }),
  )

/** The payments settings of a tenant. */
export const paymentsSettings = defineSettings(
  'payments-configuration',
  t.Object({
    isEnabled: t.Boolean({ default: false }),
    paymentSourceId: t.Optional(
      t.String({ maxLength: 128, description: 'id of the connection that processes payments' }),
    ),
    defaultCurrency: textMatching('^[A-Z]{3}$', 'Use an ISO 4217 currency code, such as USD.', {
      default: 'USD',
      description: 'ISO 4217',
    }),
    gracePeriodDays: t.Number({
      minimum: 0,
      maximum: 3_650,
      default: 3,
      description: 'number of days that a payment may be overdue',
    }),
    workspaceAdminsOnly: t.Optional(
      t.Boolean({
        description: 'whether only admins of a workspace can subscribe, check out and cancel for it; default: false',
      }),
    ),
    successUrl: pageUrl('redirect URL after a paid checkout'),
    cancelUrl: pageUrl('redirect URL after a checkout that was not paid'),
  }),
)

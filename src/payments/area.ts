import { ownerDeletedHandlers } from '../accounts/owner-deleted'
import { copyDetachments } from '../backups/copy-detachments'
import { connectionUsers } from '../connections/connection-users'
import { configurationChecks } from '../content/configurations'
import { planLimits } from '../entities/write/limitations'
import { defineArea } from '../jobs/area'
import { settingsShapes, toShapes } from '../platform/settings/tenant-settings'
import { validatePaymentsConfiguration } from './configuration'
import { listPaymentUsesOfConnection } from './connection-usage'
import { couponRoutes } from './coupons/routes'
import { findPlanLimit } from './entitlements'
import { lifecycleJob } from './jobs/lifecycle'
import { cancelOrphanedJob } from './jobs/orphan-cancellation'
import { paymentRoutes } from './payment-routes'
import { paymentsSettings } from './payments-settings'
import { planRoutes } from './plan-routes'
import { cancelForDeletedOwner, cancelJob } from './subscriptions/cancellation'
import { CANCEL_JOB, CANCEL_ORPHANED_JOB, LIFECYCLE_JOB, REPRICE_JOB } from './subscriptions/job-kinds'
import { repriceJob } from './subscriptions/pricing'
import { subscriptionRoutes } from './subscriptions/routes'
import { removeOld } from './webhooks/provider-events'
import { retryEventsJob } from './webhooks/retry-job'
import { RETRY_EVENTS_JOB } from './webhooks/retry-schedule'
import { webhookRoutes } from './webhooks/routes'

// The subscription at the provider, and who pays for it, are those of the origin.
const COPY_DETACHMENTS = [
  `update subscriptions set provider_kind = null, provider_source_id = null, external_subscription_id = null,
    external_checkout_id = null, checkout_until = null, cancel_requested = null`,
  `delete from jobs where kind in ('${CANCEL_JOB}', '${CANCEL_ORPHANED_JOB}', '${REPRICE_JOB}') and state = 'waiting'`,
]

/** Plans, subscriptions, checkouts, invoices, coupons, and the events of payment providers. */
export const payments = defineArea({
  name: 'payments',
  routes: [planRoutes, couponRoutes, subscriptionRoutes, ...paymentRoutes, ...webhookRoutes],
  jobs: {
    [CANCEL_JOB]: cancelJob,
    [REPRICE_JOB]: repriceJob,
    [RETRY_EVENTS_JOB]: retryEventsJob,
    [LIFECYCLE_JOB]: lifecycleJob,
    [CANCEL_ORPHANED_JOB]: cancelOrphanedJob,
  },
  housekeeping: { 'old provider events': removeOld },
  provides: [
    copyDetachments.provide(COPY_DETACHMENTS),
    planLimits.provide(findPlanLimit),
    connectionUsers.provide([listPaymentUsesOfConnection]),
    ownerDeletedHandlers.provide([cancelForDeletedOwner]),
    configurationChecks.provide({ [paymentsSettings.key]: validatePaymentsConfiguration }),
    settingsShapes.provide(toShapes(paymentsSettings)),
  ],
})

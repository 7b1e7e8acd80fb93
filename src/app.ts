import type { TSchema } from '@sinclair/typebox'
import { type AnyElysia, Elysia } from 'elysia'
import { encryptedRoutes } from './accounts/encrypted-data/routes'
import { setBodyShapeLookup } from './accounts/guard'
import { passwordResetJob } from './accounts/mail/password-reset'
import { mailRoutes } from './accounts/mail/routes'
import { sendMailJob } from './accounts/mail/send-mail-job'
import { onOwnerDeleted } from './accounts/owner-deleted'
import { passkeyRoutes } from './accounts/passkeys/routes'
import { accountRoutes } from './accounts/routes'
import { socialRoutes } from './accounts/social/routes'
import { totpRoutes } from './accounts/totp/routes'
import { userRoutes } from './accounts/users/routes'
import { runAiTarget as runModel } from './ai/integration-target'
import { DELETE_THREADS_JOB, deleteOwnerData, deleteThreadsJob } from './ai/owner-deleted'
import { agentRoutes } from './ai/routes/agents'
import { completionRoutes } from './ai/routes/completions'
import { mcpRoutes } from './ai/routes/mcp'
import { sourceRoutes } from './ai/routes/sources'
import { threadRoutes } from './ai/routes/threads'
import { usageRoutes } from './ai/routes/usage'
import { vectorStoreRoutes } from './ai/routes/vector-stores'
import { setEntityStore } from './blueprints/entity-store'
import { blueprintRoutes } from './blueprints/routes'
import { listWorkspaceNames } from './blueprints/warnings'
import { config } from './config'
import { registerConnectionUsers } from './connections/connection-users'
import { connectionRoutes } from './connections/routes'
import { registerConfigurationCheck } from './content/configurations'
import { blockRoutes } from './content/routes/blocks'
import { componentRoutes, staticRoutes } from './content/routes/components'
import { configurationRoutes } from './content/routes/configurations'
import { errorHandler } from './core/problem'
import { rejectUnknownKeys } from './core/unknown-keys'
import { resumeAlteration } from './entities/alteration/runner'
import { surveyChange } from './entities/alteration/schema-survey'
import { changeRoutes } from './entities/changes/routes'
import { chartRoutes } from './entities/charts/routes'
import * as entities from './entities/entities'
import { entityRoutes } from './entities/routes'
import { transferRoutes } from './entities/transfer/routes'
import { isImporting, undoAbandonedImports } from './entities/transfer/undo-journal'
import { countInWorkspace } from './entities/workspace-count'
import { setPlanLimits } from './entities/write/limitations'
import * as records from './events/events'
import { eventRoutes } from './events/routes'
import { NewEvent } from './events/shapes'
import { integrationSubscriber as integrationsHear } from './integrations/event-subscriber'
import { listIntegrationsUsing } from './integrations/integrations'
import { integrationRoutes } from './integrations/routes'
import { RUN_JOB, runJob } from './integrations/run-job'
import { SCHEDULE_JOB, scheduleJob } from './integrations/schedules'
import { registerTargetRunners } from './integrations/targets/ai'
import { listNamedWorkspaceRoles } from './integrations/warnings'
import { eventDispatcher, registerSubscribers } from './jobs/event-dispatcher'
import { registerJobs } from './jobs/worker'
import { createEmitCall } from './lambdas/host-api/events'
import { registerHostCalls } from './lambdas/host-api/host-api'
import { lambdaRoutes } from './lambdas/routes'
import { healthRoutes } from './operations/health'
import { openapiRoutes } from './operations/openapi/routes'
import { operatorRoutes } from './operations/operator'
import { rootRoutes } from './operations/root'
import { validatePaymentsConfiguration } from './payments/configuration'
import { listPaymentUsesOfConnection } from './payments/connection-usage'
import { couponRoutes } from './payments/coupons/routes'
import { findPlanLimit } from './payments/entitlements'
import { lifecycleJob } from './payments/jobs/lifecycle'
import { cancelOrphanedJob } from './payments/jobs/orphan-cancellation'
import { paymentRoutes } from './payments/payment-routes'
import { planRoutes } from './payments/plan-routes'
import { cancelForDeletedOwner, cancelJob } from './payments/subscriptions/cancellation'
import { CANCEL_JOB, CANCEL_ORPHANED_JOB, LIFECYCLE_JOB, REPRICE_JOB } from './payments/subscriptions/job-kinds'
import { repriceJob } from './payments/subscriptions/pricing'
import { subscriptionRoutes } from './payments/subscriptions/routes'
import { retryEventsJob } from './payments/webhooks/retry-job'
import { RETRY_EVENTS_JOB } from './payments/webhooks/retry-schedule'
import { webhookRoutes } from './payments/webhooks/routes'
import { deliveryJob as pluginDelivery } from './plugins/delivery-job'
import { DELIVERY_JOB, pluginSubscriber as pluginsHear } from './plugins/event-subscriber'
import { findPluginNameByUser } from './plugins/plugin-cache'
import { setPlatformPaths } from './plugins/plugins'
import { proxyRoutes } from './plugins/proxy'
import { pluginRoutes } from './plugins/routes'
import { registerWorkspaceNames } from './workspaces/restrictions'
import { allWorkspaceRoutes } from './workspaces/routes'
import { setEntityCounter } from './workspaces/workspaces'

setEntityStore({ ...entities, undoAbandonedImports, isImporting, surveyChange, resumeAlteration })
setEntityCounter(countInWorkspace)
registerWorkspaceNames(listWorkspaceNames, listNamedWorkspaceRoles)
setPlanLimits(findPlanLimit)
onOwnerDeleted(cancelForDeletedOwner, deleteOwnerData)
registerHostCalls({ 'events.emit': createEmitCall(NewEvent, records.create) })
registerJobs({ mail: sendMailJob, 'forgotten-password': passwordResetJob }, eventDispatcher)
registerJobs({ [DELIVERY_JOB]: pluginDelivery, [RUN_JOB]: runJob, [SCHEDULE_JOB]: scheduleJob })
registerSubscribers(pluginsHear, integrationsHear)
registerJobs({ [CANCEL_JOB]: cancelJob, [REPRICE_JOB]: repriceJob, [RETRY_EVENTS_JOB]: retryEventsJob })
registerJobs({
  [LIFECYCLE_JOB]: lifecycleJob,
  [CANCEL_ORPHANED_JOB]: cancelOrphanedJob,
  [DELETE_THREADS_JOB]: deleteThreadsJob,
})
registerConnectionUsers(listIntegrationsUsing, listPaymentUsesOfConnection)
registerConfigurationCheck('payments-configuration', validatePaymentsConfiguration)
registerTargetRunners({ ai: runModel })
records.setSourcePluginResolver(findPluginNameByUser)
setPlatformPaths((segment) =>
  app.routes.some(({ path }) => path.split('/')[1] === 'api' && path.split('/')[2] === segment),
)

let bodyShapes: Map<string, TSchema> | undefined
setBodyShapeLookup((method, route) => {
  bodyShapes ??= new Map(app.routes.map(({ method, path, hooks }) => [`${method} ${path}`, hooks.body]))
  return bodyShapes.get(`${method} ${route}`)
})

const api = new Elysia({ prefix: '/api' })
  .use(accountRoutes)
  .use(mailRoutes)
  .use(totpRoutes)
  .use(passkeyRoutes)
  .use(socialRoutes)
  .use(userRoutes)
  .use(allWorkspaceRoutes)
  .use(encryptedRoutes)
  .use(blueprintRoutes)
  .use(transferRoutes)
  .use(changeRoutes)
  .use(entityRoutes)
  .use(chartRoutes)
  .use(componentRoutes)
  .use(staticRoutes)
  .use(blockRoutes)
  .use(configurationRoutes)
  .use(eventRoutes)
  .use(lambdaRoutes)
  .use(connectionRoutes)
  .use(integrationRoutes)
  .use(planRoutes)
  .use(couponRoutes)
  .use(subscriptionRoutes)
  .use(paymentRoutes)
  .use(webhookRoutes)
  .use(pluginRoutes)
  .use(threadRoutes)
  .use(agentRoutes)
  .use(completionRoutes)
  .use(sourceRoutes)
  .use(usageRoutes)
  .use(vectorStoreRoutes)
  .use(mcpRoutes)
  .use(proxyRoutes)

// A host may be shorter than what Elysia takes for granted, which is ten characters.
/** The server's table of contents. */
export const app = new Elysia({ handler: { standardHostname: false }, normalize: 'typebox' })
  .use(errorHandler)
  .use(rejectUnknownKeys((): AnyElysia => app))
  .use(healthRoutes)
  .use(rootRoutes)
  .use(config.ATOLL_TEST_CLOCK === 'on' ? operatorRoutes : new Elysia())
  .use(api)
  .use(openapiRoutes((): AnyElysia => app))
export type App = typeof app

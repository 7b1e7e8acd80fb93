import type { TSchema } from '@sinclair/typebox'
import { type AnyElysia, Elysia } from 'elysia'
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
import { encryptedRoutes } from './accounts/vault/routes'
import { registerWorkspaceNames } from './accounts/workspaces/restrictions'
import { allWorkspaceRoutes } from './accounts/workspaces/routes'
import { setEntityCounter } from './accounts/workspaces/workspaces'
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
import { registerConfigurationCheck } from './content/configurations'
import { blockRoutes } from './content/routes/blocks'
import { componentRoutes, staticRoutes } from './content/routes/components'
import { configurationRoutes } from './content/routes/configurations'
import { errorHandler } from './core/problem'
import { rejectUnknownKeys } from './core/unknown-keys'
import { resumeAlteration } from './entities/altering/runner'
import { surveyChange } from './entities/altering/schema-survey'
import { changeRoutes } from './entities/changes/routes'
import { chartRoutes } from './entities/charts/routes'
import * as entities from './entities/entities'
import { setPlanLimits } from './entities/limitations'
import { entityRoutes } from './entities/routes'
import { transferRoutes } from './entities/transfer/routes'
import { isImporting, undoAbandonedImports } from './entities/transfer/undo-journal'
import { countInWorkspace } from './entities/workspace-count'
import * as records from './events/events'
import { eventRoutes } from './events/routes'
import { NewEvent } from './events/shapes'
import { eventDispatcher, registerSubscribers } from './jobs/event-dispatcher'
import { registerJobs } from './jobs/worker'
import { healthRoutes } from './operations/health'
import { openapiRoutes } from './operations/openapi'
import { operatorRoutes } from './operations/operator'
import { rootRoutes } from './operations/root'
import { validatePaymentsConfiguration } from './payments/configuration'
import { listPaymentUsesOfConnection } from './payments/connection-usage'
import { findPlanLimit } from './payments/entitlements'
import { retryEventsJob } from './payments/inbox/retry-job'
import { RETRY_EVENTS_JOB } from './payments/inbox/retry-schedule'
import { webhookRoutes } from './payments/inbox/routes'
import { lifecycleJob } from './payments/jobs/lifecycle'
import { cancelOrphanedJob } from './payments/jobs/orphan-cancellation'
import { couponRoutes } from './payments/routes/coupon-routes'
import { paymentRoutes } from './payments/routes/payment-routes'
import { planRoutes } from './payments/routes/plan-routes'
import { subscriptionRoutes } from './payments/routes/subscription-routes'
import { cancelForDeletedOwner, cancelJob } from './payments/subscriptions/cancellation'
import { CANCEL_JOB, CANCEL_ORPHANED_JOB, LIFECYCLE_JOB, REPRICE_JOB } from './payments/subscriptions/job-kinds'
import { repriceJob } from './payments/subscriptions/pricing'
import { registerConnectionUsers } from './plugins/connections/connection-users'
import { connectionRoutes } from './plugins/connections/routes'
import { deliveryJob as pluginDelivery } from './plugins/delivery-job'
import { DELIVERY_JOB, pluginSubscriber as pluginsHear } from './plugins/event-subscriber'
import { integrationSubscriber as integrationsHear } from './plugins/integrations/event-subscriber'
import { listIntegrationsUsing } from './plugins/integrations/integrations'
import { integrationRoutes } from './plugins/integrations/routes'
import { RUN_JOB, runJob } from './plugins/integrations/run-job'
import { SCHEDULE_JOB, scheduleJob } from './plugins/integrations/schedules'
import { registerTargetRunners } from './plugins/integrations/targets/ai'
import { listNamedWorkspaceRoles } from './plugins/integrations/warnings'
import { createEmitCall } from './plugins/lambdas/calls/events'
import { registerHostCalls } from './plugins/lambdas/calls/host-api'
import { lambdaRoutes } from './plugins/lambdas/routes'
import { findPluginNameByUser } from './plugins/plugin-cache'
import { setPlatformPaths } from './plugins/plugins'
import { proxyRoutes } from './plugins/proxy'
import { pluginRoutes } from './plugins/routes'

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

import type { TSchema } from '@sinclair/typebox'
import { type AnyElysia, Elysia } from 'elysia'
import { setBodyShapes } from './accounts/guard'
import { removalEnds } from './accounts/leaving'
import { delivery } from './accounts/mail/delivery'
import { forgottenPassword } from './accounts/mail/recovery'
import { mailRoutes } from './accounts/mail/routes'
import { passkeyRoutes } from './accounts/passkeys/routes'
import { accounts } from './accounts/routes'
import { socialRoutes } from './accounts/social/routes'
import { totpRoutes } from './accounts/totp/routes'
import { userRoutes } from './accounts/users/routes'
import { encryptedRoutes } from './accounts/vault/routes'
import { workspaceNamesComeFrom } from './accounts/workspaces/restrictions'
import { workspacesAndInvites } from './accounts/workspaces/routes'
import { entitiesAreCountedBy } from './accounts/workspaces/workspaces'
import { endKnowledge, removingThreads, THREADS } from './ai/leaving'
import { agentRoutes } from './ai/routes/agents'
import { completionRoutes } from './ai/routes/completions'
import { mcpRoutes } from './ai/routes/mcp'
import { sourceRoutes } from './ai/routes/sources'
import { storageRoutes } from './ai/routes/storage'
import { threadRoutes } from './ai/routes/threads'
import { usageRoutes } from './ai/routes/usage'
import { run as runModel } from './ai/running'
import { entitiesAreKeptBy } from './blueprints/kept'
import { blueprintRoutes } from './blueprints/routes'
import { listWorkspaceNames } from './blueprints/warnings'
import { config } from './config'
import { registerConfigurationCheck } from './content/configurations'
import { blockRoutes } from './content/routes/blocks'
import { componentRoutes, staticRoutes } from './content/routes/components'
import { configurationRoutes } from './content/routes/configurations'
import { problems } from './core/problem'
import { unknownKeys } from './core/unknown-keys'
import { alter } from './entities/altering/alter'
import { survey } from './entities/altering/survey'
import { countOfWorkspace } from './entities/belonging'
import { changeRoutes } from './entities/changes/routes'
import { chartRoutes } from './entities/charts/routes'
import * as entities from './entities/entities'
import { plansAreLimitedBy } from './entities/limits'
import { entityRoutes } from './entities/routes'
import { transferRoutes } from './entities/transfer/routes'
import { importing, undoForsaken } from './entities/transfer/undo'
import * as records from './events/records'
import { eventRoutes } from './events/routes'
import { NewEvent } from './events/shapes'
import { eventsAreHeardBy, fanOut } from './jobs/fanout'
import { jobsAreDoneBy } from './jobs/work'
import { documentation } from './operations/documentation'
import { operatorRoutes } from './operations/operator'
import { rootRoutes } from './operations/root'
import { operations } from './operations/routes'
import { validatePaymentSource } from './payments/configuration'
import { planLimit } from './payments/entitlements'
import { SWEEP } from './payments/inbox/parked'
import { inboxRoutes } from './payments/inbox/routes'
import { sweep } from './payments/inbox/sweeping'
import { callingOff } from './payments/jobs/calling-off'
import { timing } from './payments/jobs/timing'
import { couponRoutes } from './payments/routes/coupons'
import { paymentRoutes } from './payments/routes/payments'
import { planRoutes } from './payments/routes/plans'
import { subscriptionRoutes } from './payments/routes/subscriptions'
import { canceling, endAllOf } from './payments/subscriptions/ending'
import { CALL_OFF, CANCEL, REPRICE, TIME } from './payments/subscriptions/kinds'
import { repricing } from './payments/subscriptions/pricing'
import { paymentsBy } from './payments/usage'
import { connectionRoutes } from './plugins/connections/routes'
import { connectionsAreUsedBy } from './plugins/connections/usage'
import { delivery as pluginDelivery } from './plugins/delivery'
import { DELIVERY, hearing as pluginsHear } from './plugins/hearing'
import { hearing as integrationsHear } from './plugins/integrations/hearing'
import { integrationsBy } from './plugins/integrations/integrations'
import { integrationRoutes } from './plugins/integrations/routes'
import { RUN, running } from './plugins/integrations/running'
import { TICK, tick } from './plugins/integrations/schedules'
import { targetsAreRunBy } from './plugins/integrations/targets/ai'
import { listNamedWorkspaceRoles } from './plugins/integrations/warnings'
import { pluginBehind } from './plugins/known'
import { lambdasMayAsk } from './plugins/lambdas/calls/calls'
import { telling } from './plugins/lambdas/calls/events'
import { lambdaRoutes } from './plugins/lambdas/routes'
import { pathsAreTakenBy } from './plugins/plugins'
import { proxyRoutes } from './plugins/proxy'
import { pluginRoutes } from './plugins/routes'

entitiesAreKeptBy({ ...entities, undoForsaken, importing, survey, alter })
entitiesAreCountedBy(countOfWorkspace)
workspaceNamesComeFrom(listWorkspaceNames, listNamedWorkspaceRoles)
plansAreLimitedBy(planLimit)
removalEnds(endAllOf, endKnowledge)
lambdasMayAsk({ 'events.emit': telling(NewEvent, records.create) })
jobsAreDoneBy({ mail: delivery, 'forgotten-password': forgottenPassword }, fanOut)
jobsAreDoneBy({ [DELIVERY]: pluginDelivery, [RUN]: running, [TICK]: tick })
eventsAreHeardBy(pluginsHear, integrationsHear)
jobsAreDoneBy({ [CANCEL]: canceling, [REPRICE]: repricing, [SWEEP]: sweep })
jobsAreDoneBy({ [TIME]: timing, [CALL_OFF]: callingOff, [THREADS]: removingThreads })
connectionsAreUsedBy(integrationsBy, paymentsBy)
registerConfigurationCheck('payments-configuration', validatePaymentSource)
targetsAreRunBy({ ai: runModel })
records.sourcesAreNamedBy(pluginBehind)
pathsAreTakenBy((segment) =>
  app.routes.some(({ path }) => path.split('/')[1] === 'api' && path.split('/')[2] === segment),
)

let bodyShapes: Map<string, TSchema> | undefined
setBodyShapes((method, route) => {
  bodyShapes ??= new Map(app.routes.map(({ method, path, hooks }) => [`${method} ${path}`, hooks.body]))
  return bodyShapes.get(`${method} ${route}`)
})

const api = new Elysia({ prefix: '/api' })
  .use(accounts)
  .use(mailRoutes)
  .use(totpRoutes)
  .use(passkeyRoutes)
  .use(socialRoutes)
  .use(userRoutes)
  .use(workspacesAndInvites)
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
  .use(inboxRoutes)
  .use(pluginRoutes)
  .use(threadRoutes)
  .use(agentRoutes)
  .use(completionRoutes)
  .use(sourceRoutes)
  .use(usageRoutes)
  .use(storageRoutes)
  .use(mcpRoutes)
  .use(proxyRoutes)

// A host may be shorter than what Elysia takes for granted, which is ten characters.
/** The server's table of contents. */
export const app = new Elysia({ handler: { standardHostname: false }, normalize: 'typebox' })
  .use(problems)
  .use(unknownKeys((): AnyElysia => app))
  .use(operations)
  .use(rootRoutes)
  .use(config.ATOLL_TEST_CLOCK === 'on' ? operatorRoutes : new Elysia())
  .use(api)
  .use(documentation((): AnyElysia => app))
export type App = typeof app

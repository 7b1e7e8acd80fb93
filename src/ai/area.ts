import { ownerDeletedHandlers } from '../accounts/owner-deleted'
import { aiRunner } from '../integrations/targets/ai'
import { defineArea } from '../jobs/area'
import { useMeasures } from '../limits/quota-use'
import { settingsShapes, toShapes } from '../platform/settings/tenant-settings'
import { runAiTarget } from './integration-target'
import { removeExpiredStores } from './knowledge/store-removal'
import { DELETE_THREADS_JOB, deleteOwnerData, deleteThreadsJob } from './owner-deleted'
import { agentRoutes } from './routes/agents'
import { completionRoutes } from './routes/completions'
import { mcpRoutes } from './routes/mcp'
import { openAiRoutes } from './routes/openai'
import { sourceRoutes } from './routes/sources'
import { threadRoutes } from './routes/threads'
import { usageRoutes } from './routes/usage'
import { vectorStoreListRoutes, vectorStoreRoutes } from './routes/vector-stores'
import { abortAllTurns } from './turn/completion'
import * as turnStore from './turn/turn-store'
import * as usageRecord from './usage/usage-record'
import { usageSettings } from './usage/usage-settings'

/** Agents, threads, completions with tools, and knowledge. */
export const ai = defineArea({
  name: 'ai',
  routes: [
    threadRoutes,
    agentRoutes,
    openAiRoutes,
    completionRoutes,
    sourceRoutes,
    usageRoutes,
    vectorStoreRoutes,
    vectorStoreListRoutes,
    mcpRoutes,
  ],
  jobs: { [DELETE_THREADS_JOB]: deleteThreadsJob },
  housekeeping: {
    'expired vector stores': removeExpiredStores,
    'old turns': turnStore.removeOld,
    'old AI usage': usageRecord.removeOld,
  },
  provides: [
    aiRunner.provide(runAiTarget),
    ownerDeletedHandlers.provide([deleteOwnerData]),
    settingsShapes.provide(toShapes(usageSettings)),
    useMeasures.provide({ aiTokens: usageRecord.countTokensOfMonth }),
  ],
  start: () => ({ abort: abortAllTurns }),
})

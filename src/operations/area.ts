import { config } from '../config'
import { startLogTail } from '../core/log-tail'
import { defineArea } from '../jobs/area'
import { eventDispatcher } from '../jobs/event-dispatcher'
import { Housekeeping, housekeepingTasks } from '../jobs/housekeeping'
import * as queue from '../jobs/queue'
import { JobRunner } from '../jobs/runner'
import { announceServer } from '../tenancy/servers'
import { startDescriptorCheck } from './file-descriptors'
import { installationRoutes } from './installation'
import { checkIntegrityWeekly } from './integrity'
import { startLagMeasurement } from './metrics/event-loop-lag'
import { abandonTasks, waitForTasks } from './operator-tasks'
import { answerOtherProcesses } from './process-answers'
import { endReadiness } from './readiness'
import { startSchemaSweep } from './schema-sweep'
import { endSupportSessions } from './support'

/** Jobs, housekeeping and file checks, which keep an installation running. */
export const operations = defineArea({
  name: 'operations',
  routes: [installationRoutes],
  jobSources: [eventDispatcher],
  housekeeping: {
    'finished jobs': queue.removeOld,
    'integrity of files': checkIntegrityWeekly,
    'support sessions': endSupportSessions,
  },
  start: () => {
    if (config.ATOLL_OPERATOR_TOKEN) startLogTail()
    answerOtherProcesses()
    return [
      { stop: endReadiness, abort: abandonTasks, finish: waitForTasks },
      { stop: announceServer() },
      new Housekeeping(housekeepingTasks(), config.ATOLL_HOUSEKEEPING * 1_000).start(),
      new JobRunner().start(),
      ...[startSchemaSweep(), { stop: startLagMeasurement() }, { stop: startDescriptorCheck() }],
    ]
  },
})

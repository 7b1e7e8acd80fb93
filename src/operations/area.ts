import { config } from '../config'
import { startLogTail } from '../core/log-tail'
import { defineArea } from '../jobs/area'
import { eventDispatcher } from '../jobs/event-dispatcher'
import { housekeepingTasks, startHousekeeping } from '../jobs/housekeeping'
import * as queue from '../jobs/queue'
import { startRunner } from '../jobs/runner'
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
    const stopHousekeeping = startHousekeeping(housekeepingTasks(), config.ATOLL_HOUSEKEEPING * 1_000)
    const stopRunner = startRunner()
    const sweep = startSchemaSweep()
    const stopLagMeasurement = startLagMeasurement()
    const stopDescriptorCheck = startDescriptorCheck()
    answerOtherProcesses()
    const withdrawServer = announceServer()
    return {
      stop() {
        endReadiness()
        withdrawServer()
        stopHousekeeping()
        stopRunner()
        sweep.stop()
        stopLagMeasurement()
        stopDescriptorCheck()
      },
      abort: abandonTasks,
      finish: waitForTasks,
    }
  },
})

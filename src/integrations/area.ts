import { copyDetachments } from '../backups/copy-detachments'
import { connectionUsers } from '../connections/connection-users'
import { defineArea } from '../jobs/area'
import { lambdaUsers } from '../lambdas/lambdas'
import { workspaceNameSources } from '../workspaces/restrictions'
import { integrationSubscriber } from './event-subscriber'
import { findLambdaUser, listIntegrationsUsing } from './integrations'
import { integrationRoutes } from './routes'
import { RUN_JOB, runJob } from './run-job'
import { SCHEDULE_JOB, scheduleJob } from './schedules'
import { listNamedWorkspaceRoles } from './warnings'

/** Integrations: each runs a target when its trigger fires. */
export const integrations = defineArea({
  name: 'integrations',
  routes: integrationRoutes,
  jobs: { [RUN_JOB]: runJob, [SCHEDULE_JOB]: scheduleJob },
  subscribers: [integrationSubscriber],
  provides: [
    copyDetachments.provide([`delete from jobs where kind = '${RUN_JOB}' and state = 'waiting'`]),
    connectionUsers.provide([listIntegrationsUsing]),
    lambdaUsers.provide([findLambdaUser]),
    workspaceNameSources.provide([listNamedWorkspaceRoles]),
  ],
})

import { Elysia, status, t } from 'elysia'
import { ListedBackup, TenantClone, TenantRestore } from '../backups/shapes'
import { ProblemShape } from '../core/problem'
import { type HttpContext, sendPage } from '../core/response-headers'
import { SuccessShape } from '../core/shapes'
import { ChosenRateLimits, QuotaChange, TenantQuotas } from '../limits/shapes'
import { growingListQuery, listQuery } from '../storage/pagination'
import { chooseDefaultTenant, getDefaultTenant } from '../tenancy/default-tenant'
import { listSettings } from './checks'
import { listHomes } from './homes'
import { describeHealth } from './installation-health'
import { listLogLines } from './log-lines'
import { operatorRoute } from './operator-access'
import { listOperatorEvents } from './operator-events'
import * as tasks from './operator-tasks'
import * as operatorTokens from './operator-tokens'
import {
  CreatedOperatorToken,
  CreatedTenant,
  DefaultTenant,
  DefaultTenantChoice,
  DeletedTenant,
  LogLine,
  LogQuery,
  NewOperatorToken,
  NewTenant,
  OperatorEvent,
  OperatorHealth,
  OperatorHomes,
  OperatorSetting,
  OperatorTask,
  OperatorTenant,
  OperatorToken,
  SetUpLink,
  SupportLink,
  SupportRequest,
  TenantHosts,
  TenantLimits,
  TenantMove,
} from './shapes'
import { openSupport } from './support'
import { requireConfirmedRestore } from './tasks/restore'
import * as tenants from './tenant-administration'

const params = t.Object({ id: t.String() })
const refusals = { 401: ProblemShape, 403: ProblemShape, 404: ProblemShape, 429: ProblemShape }
const TASK_ANSWER =
  'Returns 200 with the result or the problem if the task ends within 5 seconds; otherwise 202 with the URL of the task in `Location`.'
const listRefusals = { 401: ProblemShape, 403: ProblemShape, 429: ProblemShape }

/** Sends a task with 200 when it has ended, else with 202 and its address. */
async function sendTask({ headers }: HttpContext['set'], started: Promise<OperatorTask>) {
  const task = await started
  if (task.status !== 'running') return status(200, task)
  headers.location = `/operator/tasks/${task._id}`
  return status(202, task)
}

/** The routes of the operator, who runs the installation. */
export const operatorRoutes = new Elysia({ prefix: '/operator', tags: ['operations'] })
  .get('/tenants', ({ query, request, set }) => sendPage({ request, set }, tenants.list(query)), {
    ...operatorRoute('listTenants', 'List tenants'),
    query: t.Object({
      ...listQuery,
      q: t.Optional(t.String({ maxLength: 300, description: 'part of a tenant ID or host' })),
    }),
    response: { 200: t.Array(OperatorTenant), ...listRefusals },
  })
  .get('/tenants/:id', ({ params: { id } }) => tenants.get(id), {
    ...operatorRoute('getTenant', 'Get a tenant'),
    params,
    response: { 200: OperatorTenant, ...refusals },
  })
  .post('/tenants', async ({ body, request }) => status(201, await tenants.create(body, request)), {
    ...operatorRoute(
      'createTenant',
      'Create a tenant',
      'Without an administrator, the response contains a link that creates one within 24 hours.',
    ),
    body: NewTenant,
    response: { 201: CreatedTenant, ...listRefusals, 409: ProblemShape },
  })
  .delete('/tenants/:id', ({ params: { id }, query }) => tenants.remove(id, query.confirm), {
    ...operatorRoute('deleteTenant', 'Delete a tenant', 'Its files are moved to the .trash folder of the data folder.'),
    params,
    query: t.Object({ confirm: t.Optional(t.String({ 'x-required': true, description: 'tenant ID, to confirm' })) }),
    response: { 200: DeletedTenant, ...refusals },
  })
  .post('/tenants/:id/suspend', ({ params: { id } }) => tenants.setStatus(id, 'suspended'), {
    ...operatorRoute('suspendTenant', 'Suspend a tenant', 'All of its requests get 403 TENANT_SUSPENDED.'),
    params,
    response: { 200: OperatorTenant, ...refusals },
  })
  .post('/tenants/:id/resume', ({ params: { id }, query }) => tenants.resume(id, query), {
    ...operatorRoute('resumeTenant', 'Resume a suspended tenant', 'With `outgoing`, a copy may make outgoing calls.'),
    params,
    query: t.Object({ outgoing: t.Optional(t.Boolean({ description: 'true: allows outgoing calls from a copy' })) }),
    response: { 200: OperatorTenant, ...refusals },
  })
  .get('/tenants/:id/hosts', ({ params: { id } }) => tenants.getHosts(id), {
    ...operatorRoute('getTenantHosts', 'Get the hosts assigned to a tenant'),
    params,
    response: { 200: TenantHosts, ...refusals },
  })
  .put('/tenants/:id/hosts', ({ params: { id }, body }) => tenants.setHosts(id, body.hosts), {
    ...operatorRoute('setTenantHosts', 'Replace the hosts assigned to a tenant'),
    params,
    body: TenantHosts,
    response: { 200: TenantHosts, ...refusals, 409: ProblemShape },
  })
  .get('/tenants/:id/limits', ({ params: { id } }) => tenants.getLimits(id), {
    ...operatorRoute(
      'getTenantLimits',
      'Get the rate limits of a tenant',
      'Returns the rate limits set by the operator, and the defaults for the rest.',
    ),
    params,
    response: { 200: TenantLimits, ...refusals },
  })
  .put('/tenants/:id/limits', ({ params: { id }, body }) => tenants.setLimits(id, body), {
    ...operatorRoute(
      'setTenantLimits',
      'Replace the rate limits of a tenant',
      'Defaults apply to omitted limits. The tenant can only lower its limits, in `limits-configuration`.',
    ),
    params,
    body: ChosenRateLimits,
    response: { 200: TenantLimits, ...refusals },
  })
  .get('/tenants/:id/quotas', ({ params: { id } }) => tenants.getQuotas(id), {
    ...operatorRoute(
      'getTenantQuotas',
      'Get the quotas of a tenant',
      'Also returns the usage of each kind. A quota of `null` means unlimited.',
    ),
    params,
    response: { 200: TenantQuotas, ...refusals },
  })
  .put('/tenants/:id/quotas', ({ params: { id }, body }) => tenants.setQuotas(id, body), {
    ...operatorRoute(
      'setTenantQuotas',
      'Change the quotas of a tenant',
      'Omitted quotas are unchanged; `null` removes a quota. Existing data is retained even if it exceeds a quota.',
    ),
    params,
    body: QuotaChange,
    response: { 200: TenantQuotas, ...refusals },
  })
  .post('/tenants/:id/setup-link', ({ params: { id }, request }) => tenants.createSetUpLink(id, request), {
    ...operatorRoute('createSetUpLink', 'Create a link that creates the first administrator of a tenant'),
    params,
    response: { 200: SetUpLink, ...refusals },
  })
  .post('/tenants/:id/support', ({ params: { id }, body, request }) => openSupport(id, body.reason, request), {
    ...operatorRoute(
      'openSupport',
      'Open a tenant for support',
      'Returns a single-use link, valid for one hour, that signs in as an administrator of the operator. Records the event support-opened for the tenant and the operator.',
    ),
    params,
    body: SupportRequest,
    response: { 200: SupportLink, ...refusals },
  })
  .post('/tenants/:id/move', ({ params: { id }, body, set }) => sendTask(set, tasks.start('move', id, body)), {
    ...operatorRoute(
      'moveTenant',
      'Move a tenant to another home',
      'The tenant stays online; writes pause for about 200 ms at a time. Returns 200 with the result or the problem if the move ends within 5 seconds; otherwise 202 with the URL of the task in `Location`. A move to the current home finishes an interrupted move.',
    ),
    params,
    body: TenantMove,
    response: { 200: OperatorTask, 202: OperatorTask, ...refusals, 409: ProblemShape },
  })
  .get('/tenants/:id/backups', ({ params: { id } }) => tenants.listBackups(id), {
    ...operatorRoute(
      'listTenantBackups',
      'List the backups of a tenant',
      'Returns the backups in the target of ATOLL_BACKUP_TO, newest first.',
    ),
    params,
    response: { 200: t.Array(ListedBackup), 400: ProblemShape, ...refusals, 502: ProblemShape },
  })
  .post('/tenants/:id/backups', ({ params: { id }, set }) => sendTask(set, tasks.start('backup', id, {})), {
    ...operatorRoute('backUpTenant', 'Back up a tenant', `The tenant stays online. ${TASK_ANSWER}`),
    params,
    response: { 200: OperatorTask, 202: OperatorTask, 400: ProblemShape, ...refusals, 409: ProblemShape },
  })
  .post(
    '/tenants/:id/restore',
    ({ params: { id }, body, query, set }) =>
      sendTask(set, tasks.start('restore', id, requireConfirmedRestore(id, body, query.confirm))),
    {
      ...operatorRoute(
        'restoreTenant',
        'Restore a backup of a tenant',
        `Restores to a new tenant, or replaces the tenant's data, which requires \`confirm\`. ${TASK_ANSWER}`,
      ),
      params,
      query: t.Object({
        confirm: t.Optional(t.String({ description: 'tenant ID, to confirm that its data is replaced' })),
      }),
      body: TenantRestore,
      response: { 200: OperatorTask, 202: OperatorTask, 400: ProblemShape, ...refusals, 409: ProblemShape },
    },
  )
  .post('/tenants/:id/clone', ({ params: { id }, body, set }) => sendTask(set, tasks.start('clone', id, body)), {
    ...operatorRoute(
      'cloneTenant',
      'Copy a tenant to a new one',
      `The copy has no hosts, sessions or tokens. ${TASK_ANSWER}`,
    ),
    params,
    body: TenantClone,
    response: { 200: OperatorTask, 202: OperatorTask, 400: ProblemShape, ...refusals, 409: ProblemShape },
  })
  .get('/tokens', () => operatorTokens.listTokens(), {
    ...operatorRoute('listOperatorTokens', 'List the operator tokens'),
    response: { 200: t.Array(OperatorToken), ...listRefusals },
  })
  .post('/tokens', async ({ body }) => status(201, await operatorTokens.createToken(body)), {
    ...operatorRoute(
      'createOperatorToken',
      'Create an operator token',
      'Scopes limit the token. Only the token in ATOLL_OPERATOR_TOKEN can create, list and remove tokens.',
    ),
    body: NewOperatorToken,
    response: { 201: CreatedOperatorToken, ...listRefusals, 409: ProblemShape },
  })
  .delete('/tokens/:id', ({ params: { id } }) => operatorTokens.removeToken(id), {
    ...operatorRoute('removeOperatorToken', 'Remove an operator token'),
    params,
    response: { 200: SuccessShape, ...refusals },
  })
  .get('/homes', () => listHomes(), {
    ...operatorRoute('listHomes', 'List the homes that tenants can be moved to'),
    response: { 200: OperatorHomes, ...listRefusals },
  })
  .get('/tasks', ({ query, request, set }) => sendPage({ request, set }, tasks.list(query)), {
    ...operatorRoute('listTasks', 'List the tasks of the operator'),
    query: t.Object({
      ...growingListQuery,
      tenant: t.Optional(t.String({ description: 'tenant ID' })),
      kind: t.Optional(t.String({ description: 'kind of task: `move`, `backup`, `restore` or `clone`' })),
    }),
    response: { 200: t.Array(OperatorTask), ...listRefusals },
  })
  .get('/tasks/:id', ({ params: { id } }) => tasks.get(id), {
    ...operatorRoute('getTask', 'Get a task of the operator'),
    params,
    response: { 200: OperatorTask, ...refusals },
  })
  .get('/events', ({ query, request, set }) => sendPage({ request, set }, listOperatorEvents(query)), {
    ...operatorRoute('listOperatorEvents', 'List tenant events'),
    query: t.Object({ ...growingListQuery, tenant: t.Optional(t.String({ description: 'tenant ID' })) }),
    response: { 200: t.Array(OperatorEvent), ...listRefusals },
  })
  .get('/default-tenant', () => getDefaultTenant(), {
    ...operatorRoute(
      'getDefaultTenant',
      'Get the default tenant',
      'ATOLL_DEFAULT_TENANT takes precedence over the choice of the operator.',
    ),
    response: { 200: DefaultTenant, ...listRefusals },
  })
  .put('/default-tenant', ({ body }) => chooseDefaultTenant(body), {
    ...operatorRoute('chooseDefaultTenant', 'Set the default tenant'),
    body: DefaultTenantChoice,
    response: { 200: DefaultTenant, 400: ProblemShape, ...refusals },
  })
  .get('/health', () => describeHealth(), {
    ...operatorRoute('getInstallationHealth', 'Check the installation'),
    response: { 200: OperatorHealth, ...listRefusals },
  })
  .get('/settings', () => listSettings(), {
    ...operatorRoute('listSettings', 'List the settings with their sources'),
    response: { 200: t.Array(OperatorSetting), ...listRefusals },
  })
  .get('/logs', ({ query }) => listLogLines(query), {
    ...operatorRoute(
      'listLogLines',
      'List recent log lines',
      "Returns the last 256 KiB of this process's log, which are held in memory, newest first.",
    ),
    query: LogQuery,
    response: { 200: t.Array(LogLine), ...listRefusals },
  })

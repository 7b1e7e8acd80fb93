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
  '200 when it has ended within 5 seconds, with its result or its problem; 202 while it runs, with its address in `Location`.'
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
      q: t.Optional(t.String({ maxLength: 300, description: 'a part of an id or of a host' })),
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
      'Without an administrator, the answer has a link that creates one within 24 hours.',
    ),
    body: NewTenant,
    response: { 201: CreatedTenant, ...listRefusals, 409: ProblemShape },
  })
  .delete('/tenants/:id', ({ params: { id }, query }) => tenants.remove(id, query.confirm), {
    ...operatorRoute('deleteTenant', 'Delete a tenant', 'Its files are moved to the folder .trash of the data.'),
    params,
    query: t.Object({
      confirm: t.Optional(t.String({ 'x-required': true, description: 'the id of the tenant again' })),
    }),
    response: { 200: DeletedTenant, ...refusals },
  })
  .post('/tenants/:id/suspend', ({ params: { id } }) => tenants.setStatus(id, 'suspended'), {
    ...operatorRoute('suspendTenant', 'Suspend a tenant', 'All of its requests get 403 TENANT_SUSPENDED.'),
    params,
    response: { 200: OperatorTenant, ...refusals },
  })
  .post('/tenants/:id/resume', ({ params: { id }, query }) => tenants.resume(id, query), {
    ...operatorRoute('resumeTenant', 'Resume a suspended tenant', 'With `outgoing`, a copy acts outside from now on.'),
    params,
    query: t.Object({
      outgoing: t.Optional(t.Boolean({ description: 'whether a copy of a tenant may act outside from now on' })),
    }),
    response: { 200: OperatorTenant, ...refusals },
  })
  .get('/tenants/:id/hosts', ({ params: { id } }) => tenants.getHosts(id), {
    ...operatorRoute('getTenantHosts', 'Get the hosts that are assigned to a tenant'),
    params,
    response: { 200: TenantHosts, ...refusals },
  })
  .put('/tenants/:id/hosts', ({ params: { id }, body }) => tenants.setHosts(id, body.hosts), {
    ...operatorRoute('setTenantHosts', 'Replace the hosts that are assigned to a tenant'),
    params,
    body: TenantHosts,
    response: { 200: TenantHosts, ...refusals, 409: ProblemShape },
  })
  .get('/tenants/:id/limits', ({ params: { id } }) => tenants.getLimits(id), {
    ...operatorRoute(
      'getTenantLimits',
      'Get the rate limits of a tenant',
      'Those that the operator has set, and the defaults for the others.',
    ),
    params,
    response: { 200: TenantLimits, ...refusals },
  })
  .put('/tenants/:id/limits', ({ params: { id }, body }) => tenants.setLimits(id, body), {
    ...operatorRoute(
      'setTenantLimits',
      'Replace the rate limits of a tenant',
      'The defaults apply to what is left out. The tenant itself can only lower them, in its `limits-configuration`.',
    ),
    params,
    body: ChosenRateLimits,
    response: { 200: TenantLimits, ...refusals },
  })
  .get('/tenants/:id/quotas', ({ params: { id } }) => tenants.getQuotas(id), {
    ...operatorRoute(
      'getTenantQuotas',
      'Get the quotas of a tenant',
      'Also returns how much of each the tenant uses. A kind without a quota is `null`, and may be used without limit.',
    ),
    params,
    response: { 200: TenantQuotas, ...refusals },
  })
  .put('/tenants/:id/quotas', ({ params: { id }, body }) => tenants.setQuotas(id, body), {
    ...operatorRoute(
      'setTenantQuotas',
      'Change the quotas of a tenant',
      'Quotas that are left out stay, and `null` removes one. What is there already stays, also beyond a quota.',
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
      'Returns a link that signs in once, within an hour, as an administrator of the operator. The tenant and the operator get the event support-opened.',
    ),
    params,
    body: SupportRequest,
    response: { 200: SupportLink, ...refusals },
  })
  .post('/tenants/:id/move', ({ params: { id }, body, set }) => sendTask(set, tasks.start('move', id, body)), {
    ...operatorRoute(
      'moveTenant',
      'Move a tenant to another home',
      'The tenant is served throughout; writes wait for moments of some 200 ms. 200 when the move has ended within 5 seconds, with its result or its problem; 202 while it runs, with its address in `Location`. A move to the current home finishes an interrupted one.',
    ),
    params,
    body: TenantMove,
    response: { 200: OperatorTask, 202: OperatorTask, ...refusals, 409: ProblemShape },
  })
  .get('/tenants/:id/backups', ({ params: { id } }) => tenants.listBackups(id), {
    ...operatorRoute(
      'listTenantBackups',
      'List the backups of a tenant',
      'Those in the target of ATOLL_BACKUP_TO, latest first.',
    ),
    params,
    response: { 200: t.Array(ListedBackup), 400: ProblemShape, ...refusals, 502: ProblemShape },
  })
  .post('/tenants/:id/backups', ({ params: { id }, set }) => sendTask(set, tasks.start('backup', id, {})), {
    ...operatorRoute('backUpTenant', 'Back up a tenant', `The tenant is served throughout. ${TASK_ANSWER}`),
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
        `As a new tenant, or in place of its data, which \`confirm\` has to confirm. ${TASK_ANSWER}`,
      ),
      params,
      query: t.Object({
        confirm: t.Optional(t.String({ description: 'the id of the tenant again, when its data are replaced' })),
      }),
      body: TenantRestore,
      response: { 200: OperatorTask, 202: OperatorTask, 400: ProblemShape, ...refusals, 409: ProblemShape },
    },
  )
  .post('/tenants/:id/clone', ({ params: { id }, body, set }) => sendTask(set, tasks.start('clone', id, body)), {
    ...operatorRoute(
      'cloneTenant',
      'Copy a tenant to a new one',
      `The copy has neither hosts nor sessions and tokens. ${TASK_ANSWER}`,
    ),
    params,
    body: TenantClone,
    response: { 200: OperatorTask, 202: OperatorTask, 400: ProblemShape, ...refusals, 409: ProblemShape },
  })
  .get('/tokens', () => operatorTokens.listTokens(), {
    ...operatorRoute('listOperatorTokens', 'List the tokens of the operator'),
    response: { 200: t.Array(OperatorToken), ...listRefusals },
  })
  .post('/tokens', async ({ body }) => status(201, await operatorTokens.createToken(body)), {
    ...operatorRoute(
      'createOperatorToken',
      'Create a token of the operator',
      'It allows what its scopes say. Only the token of the setting may create, list and remove tokens.',
    ),
    body: NewOperatorToken,
    response: { 201: CreatedOperatorToken, ...listRefusals, 409: ProblemShape },
  })
  .delete('/tokens/:id', ({ params: { id } }) => operatorTokens.removeToken(id), {
    ...operatorRoute('removeOperatorToken', 'Remove a token of the operator'),
    params,
    response: { 200: SuccessShape, ...refusals },
  })
  .get('/homes', () => listHomes(), {
    ...operatorRoute('listHomes', 'List the homes to which tenants can be moved'),
    response: { 200: OperatorHomes, ...listRefusals },
  })
  .get('/tasks', ({ query, request, set }) => sendPage({ request, set }, tasks.list(query)), {
    ...operatorRoute('listTasks', 'List long work that the operator started'),
    query: t.Object({
      ...growingListQuery,
      tenant: t.Optional(t.String({ description: 'the id of a tenant' })),
      kind: t.Optional(t.String({ description: 'what is done: `move`, `backup`, `restore` or `clone`' })),
    }),
    response: { 200: t.Array(OperatorTask), ...listRefusals },
  })
  .get('/tasks/:id', ({ params: { id } }) => tasks.get(id), {
    ...operatorRoute('getTask', 'Get long work that the operator started'),
    params,
    response: { 200: OperatorTask, ...refusals },
  })
  .get('/events', ({ query, request, set }) => sendPage({ request, set }, listOperatorEvents(query)), {
    ...operatorRoute('listOperatorEvents', 'List what was done with tenants'),
    query: t.Object({ ...growingListQuery, tenant: t.Optional(t.String({ description: 'the id of a tenant' })) }),
    response: { 200: t.Array(OperatorEvent), ...listRefusals },
  })
  .get('/default-tenant', () => getDefaultTenant(), {
    ...operatorRoute(
      'getDefaultTenant',
      'Get the tenant that answers where no host names one',
      'ATOLL_DEFAULT_TENANT prevails over what the operator chooses here.',
    ),
    response: { 200: DefaultTenant, ...listRefusals },
  })
  .put('/default-tenant', ({ body }) => chooseDefaultTenant(body), {
    ...operatorRoute('chooseDefaultTenant', 'Choose the tenant that answers where no host names one'),
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
      'List the latest lines of the log',
      'The latest 256 KiB of this process, which are kept in memory. The latest line comes first.',
    ),
    query: LogQuery,
    response: { 200: t.Array(LogLine), ...listRefusals },
  })

import { Elysia, status, t } from 'elysia'
import { ProblemShape } from '../../core/problem'
import { sendPage } from '../../core/response-headers'
import { IdParams, SuccessShape } from '../../core/shapes'
import { guard } from '../guard'
import { User } from '../shapes'
import * as administration from './administration'
import { listUsers } from './list'
import { listRoles } from './roles'
import { NewUser, UserChange, UserSignInState, UserStats, UserSummary, UsersQuery } from './shapes'
import * as signInState from './signin-state'
import { getUserStats } from './stats'

const conflictResponses = { 404: ProblemShape, 409: ProblemShape }

const userAdminRoutes = new Elysia({ prefix: '/users', tags: ['users'] })
  .use(guard('users'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, listUsers(ctx, query)), {
    can: 'privileged',
    query: UsersQuery,
    response: t.Array(UserSummary),
    detail: { operationId: 'listUsers', summary: 'List users' },
  })
  .get('/stats', ({ ctx }) => getUserStats(ctx), {
    can: 'privileged',
    response: UserStats,
    detail: {
      operationId: 'getUserStats',
      summary: 'Count users',
      description: 'Counts users by role, registration date and last activity.',
    },
  })
  .get('/:id', ({ ctx, params }) => administration.get(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: { 200: User, 404: ProblemShape },
    detail: { operationId: 'getUser', summary: 'Get a user' },
  })
  .post('/', async ({ ctx, body }) => status(201, await administration.create(ctx, body)), {
    can: 'privileged',
    addsData: true,
    body: NewUser,
    response: { 201: User, 409: ProblemShape },
    detail: { operationId: 'createUser', summary: 'Create a user' },
  })
  .put('/:id', ({ ctx, params, body, request }) => administration.change(ctx, params.id, body, request), {
    can: 'privileged',
    changesData: true,
    params: IdParams,
    body: UserChange,
    response: { 200: User, ...conflictResponses, 429: ProblemShape },
    detail: { operationId: 'updateUser', summary: 'Update a user' },
  })
  .delete('/:id', ({ ctx, params }) => administration.remove(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: { 200: SuccessShape, ...conflictResponses },
    detail: { operationId: 'deleteUser', summary: 'Delete a user' },
  })
  .get('/:id/signin-state', ({ ctx, params }) => signInState.getSignInState(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: { 200: UserSignInState, 404: ProblemShape },
    detail: {
      operationId: 'getUserSignInState',
      summary: 'Get the sign-in methods of a user',
      description: 'Returns the sign-in methods, the last activity, and the number of sessions and API tokens.',
    },
  })
  .delete('/:id/sessions', ({ ctx, params }) => signInState.endSessions(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape },
    detail: { operationId: 'endUserSessions', summary: 'End all sessions of a user' },
  })
  .delete('/:id/api-tokens', ({ ctx, params }) => signInState.deleteApiTokens(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape },
    detail: { operationId: 'deleteUserApiTokens', summary: 'Delete all API tokens of a user' },
  })

const roleRoutes = new Elysia({ tags: ['users'] })
  .use(guard('users'))
  .get('/roles', ({ ctx }) => listRoles(ctx), {
    can: 'privileged',
    response: t.Array(t.String()),
    detail: {
      operationId: 'listRoles',
      summary: 'List the roles in use',
      description: 'Returns the built-in roles and all roles that users have.',
    },
  })

/** Routes of users and roles, for admins of the tenant. */
export const userRoutes = [userAdminRoutes, roleRoutes]

import { Elysia, status, t } from 'elysia'
import { guard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { sendPage } from '../core/response-headers'
import { IdParams, SuccessShape } from '../core/shapes'
import { listQuery } from '../storage/pagination'
import * as invites from './invites'
import * as members from './members'
import { searchWorkspaces } from './search'
import {
  ActivatedWorkspace,
  Invitation,
  InvitationAnswer,
  Invite,
  Member,
  MemberAdded,
  MemberChange,
  MemberChanged,
  MemberRemoved,
  NewInvite,
  NewMember,
  NewWorkspace,
  Workspace,
  WorkspaceChange,
  WorkspaceDetails,
  WorkspaceRemoved,
  WorkspaceSummary,
  WorkspacesQuery,
} from './shapes'
import * as workspaces from './workspaces'

const pageQuery = t.Object(listQuery)
const memberParams = t.Object({ id: t.String(), userId: t.String() })
const conflictResponses = { 404: ProblemShape, 409: ProblemShape }

const workspaceRoutes = new Elysia({ prefix: '/workspaces', tags: ['workspaces'] })
  .use(guard('workspaces'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, workspaces.list(ctx, query)), {
    can: 'user',
    query: pageQuery,
    response: t.Array(Workspace),
    detail: { operationId: 'listWorkspaces', summary: 'List your workspaces' },
  })
  .get('/all', ({ ctx, query, request, set }) => sendPage({ request, set }, searchWorkspaces(ctx, query, request)), {
    can: 'privileged',
    query: WorkspacesQuery,
    response: t.Array(WorkspaceSummary),
    detail: { operationId: 'listAllWorkspaces', summary: 'List all workspaces of the tenant' },
  })
  .get('/:id', ({ ctx, params }) => workspaces.get(ctx, params.id), {
    can: 'user',
    params: IdParams,
    response: { 200: WorkspaceDetails, 404: ProblemShape },
    detail: { operationId: 'getWorkspace', summary: 'Get a workspace' },
  })
  .post('/', async ({ ctx, body }) => status(201, await workspaces.create(ctx, body)), {
    can: 'user',
    addsData: true,
    body: NewWorkspace,
    response: { 201: WorkspaceDetails },
    detail: { operationId: 'createWorkspace', summary: 'Create a workspace' },
  })
  .put('/:id', ({ ctx, params, body }) => workspaces.change(ctx, params.id, body), {
    can: 'user',
    changesData: true,
    params: IdParams,
    body: WorkspaceChange,
    response: { 200: WorkspaceDetails, 404: ProblemShape },
    detail: { operationId: 'updateWorkspace', summary: 'Update a workspace' },
  })
  .delete('/:id', ({ ctx, params }) => workspaces.remove(ctx, params.id), {
    can: 'user',
    params: IdParams,
    response: { 200: WorkspaceRemoved, 404: ProblemShape },
    detail: {
      operationId: 'deleteWorkspace',
      summary: 'Delete a workspace',
      description:
        'Also deletes its memberships, invitations and API tokens. Its entities are retained, and the response counts them.',
    },
  })
  .post('/:id/activate', ({ ctx, params }) => workspaces.activate(ctx, params.id), {
    can: 'oneself',
    params: IdParams,
    response: { 200: ActivatedWorkspace, 404: ProblemShape },
    detail: {
      operationId: 'activateWorkspace',
      summary: 'Switch to a workspace',
      description: 'Makes this the active workspace of the session or of the API token.',
    },
  })

const memberRoutes = new Elysia({ prefix: '/workspaces/:id/members', tags: ['workspaces'] })
  .use(guard('workspaces'))
  .get('/', ({ ctx, params, query, request, set }) => sendPage({ request, set }, members.list(ctx, params.id, query)), {
    can: 'user',
    params: IdParams,
    query: pageQuery,
    response: { 200: t.Array(Member), 404: ProblemShape },
    detail: { operationId: 'listMembers', summary: 'List the members of a workspace' },
  })
  .post('/', async ({ ctx, params, body }) => status(201, await members.add(ctx, params.id, body)), {
    can: 'user',
    addsData: true,
    params: IdParams,
    body: NewMember,
    response: { 201: MemberAdded, ...conflictResponses },
    detail: { operationId: 'addMember', summary: 'Add a member to a workspace' },
  })
  .put('/:userId', ({ ctx, params, body }) => members.change(ctx, params.id, params.userId, body.roles), {
    can: 'user',
    params: memberParams,
    body: MemberChange,
    response: { 200: MemberChanged, ...conflictResponses },
    detail: { operationId: 'updateMember', summary: 'Set the roles of a member' },
  })
  .delete('/:userId', ({ ctx, params }) => members.remove(ctx, params.id, params.userId), {
    can: 'user',
    params: memberParams,
    response: { 200: MemberRemoved, ...conflictResponses },
    detail: { operationId: 'removeMember', summary: 'Remove a member from a workspace' },
  })

const inviteRoutes = new Elysia({ tags: ['workspaces'] })
  .use(guard('workspaces'))
  .get('/invites', ({ ctx, query, request, set }) => sendPage({ request, set }, invites.listMine(ctx, query)), {
    can: 'user',
    query: pageQuery,
    response: t.Array(Invitation),
    detail: {
      operationId: 'listInvitations',
      summary: 'List your invitations',
      description: 'Invitations sent to your verified e-mail address.',
    },
  })
  .post('/invites', ({ ctx, body }) => invites.answerInvitation(ctx, body), {
    can: 'user',
    body: InvitationAnswer,
    response: { 200: SuccessShape, ...conflictResponses },
    detail: { operationId: 'answerInvitation', summary: 'Accept or decline an invitation' },
  })
  .post(
    '/workspaces/:id/invites',
    async ({ ctx, params, body }) => status(201, await invites.create(ctx, params.id, body)),
    {
      can: 'user',
      addsData: true,
      params: IdParams,
      body: NewInvite,
      response: { 201: Invite, ...conflictResponses },
      detail: { operationId: 'createInvite', summary: 'Invite a person to a workspace' },
    },
  )
  .delete('/workspaces/:id/invites/:inviteId', ({ ctx, params }) => invites.remove(ctx, params.id, params.inviteId), {
    can: 'user',
    params: t.Object({ id: t.String(), inviteId: t.String() }),
    response: { 200: SuccessShape, 404: ProblemShape },
    detail: { operationId: 'deleteInvite', summary: 'Withdraw an invitation' },
  })

/** Routes of workspaces, their members and invites. */
export const allWorkspaceRoutes = [workspaceRoutes, memberRoutes, inviteRoutes]

import { Elysia, status, t } from 'elysia'
import { ProblemShape } from '../../core/problem'
import { done, one } from '../../core/shapes'
import { listing } from '../../storage/lists'
import { guard } from '../guard'
import { all } from './all'
import * as invites from './invites'
import * as members from './members'
import {
  ActivatedWorkspace,
  AllQuery,
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
  Removed,
  SomeWorkspace,
  WholeWorkspace,
  Workspace,
  WorkspaceChange,
} from './shapes'
import * as workspaces from './workspaces'

const query = t.Object(listing)
const member = t.Object({ id: t.String(), userId: t.String() })
const changed = { 404: ProblemShape, 409: ProblemShape }

const workspaceRoutes = new Elysia({ prefix: '/workspaces', tags: ['workspaces'] })
  .use(guard('workspaces'))
  .get('/', ({ ctx, query, request, set }) => workspaces.list(ctx, query, { request, set }), {
    can: 'user',
    query,
    response: t.Array(Workspace),
    detail: { operationId: 'listWorkspaces', summary: 'List your workspaces' },
  })
  .get('/all', ({ ctx, query, request, set }) => all(ctx, query, { request, set }), {
    can: 'privileged',
    query: AllQuery,
    response: t.Array(SomeWorkspace),
    detail: { operationId: 'listAllWorkspaces', summary: 'List all workspaces of the tenant' },
  })
  .get('/:id', ({ ctx, params }) => workspaces.get(ctx, params.id), {
    can: 'user',
    params: one,
    response: { 200: WholeWorkspace, 404: ProblemShape },
    detail: { operationId: 'getWorkspace', summary: 'Get a workspace' },
  })
  .post('/', async ({ ctx, body }) => status(201, await workspaces.create(ctx, body)), {
    can: 'user',
    body: NewWorkspace,
    response: { 201: WholeWorkspace },
    detail: { operationId: 'createWorkspace', summary: 'Create a workspace' },
  })
  .put('/:id', ({ ctx, params, body }) => workspaces.change(ctx, params.id, body), {
    can: 'user',
    params: one,
    body: WorkspaceChange,
    response: { 200: WholeWorkspace, 404: ProblemShape },
    detail: { operationId: 'updateWorkspace', summary: 'Update a workspace' },
  })
  .delete('/:id', ({ ctx, params }) => workspaces.remove(ctx, params.id), {
    can: 'user',
    params: one,
    response: { 200: Removed, 404: ProblemShape },
    detail: {
      operationId: 'deleteWorkspace',
      summary: 'Delete a workspace',
      description:
        'Also deletes its memberships, invitations and API tokens. Its entities stay, and the answer counts them.',
    },
  })
  .post('/:id/activate', ({ ctx, params }) => workspaces.activate(ctx, params.id), {
    can: 'oneself',
    params: one,
    response: { 200: ActivatedWorkspace, 404: ProblemShape },
    detail: {
      operationId: 'activateWorkspace',
      summary: 'Switch to a workspace',
      description: 'What the session, or the API token, does from now on it does in this workspace.',
    },
  })

const memberRoutes = new Elysia({ prefix: '/workspaces/:id/members', tags: ['workspaces'] })
  .use(guard('workspaces'))
  .get('/', ({ ctx, params, query, request, set }) => members.list(ctx, params.id, query, { request, set }), {
    can: 'user',
    params: one,
    query,
    response: { 200: t.Array(Member), 404: ProblemShape },
    detail: { operationId: 'listMembers', summary: 'List the members of a workspace' },
  })
  .post('/', async ({ ctx, params, body }) => status(201, await members.add(ctx, params.id, body)), {
    can: 'user',
    params: one,
    body: NewMember,
    response: { 201: MemberAdded, ...changed },
    detail: { operationId: 'addMember', summary: 'Add a member to a workspace' },
  })
  .put('/:userId', ({ ctx, params, body }) => members.change(ctx, params.id, params.userId, body.roles), {
    can: 'user',
    params: member,
    body: MemberChange,
    response: { 200: MemberChanged, ...changed },
    detail: { operationId: 'updateMember', summary: 'Set the roles of a member' },
  })
  .delete('/:userId', ({ ctx, params }) => members.remove(ctx, params.id, params.userId), {
    can: 'user',
    params: member,
    response: { 200: MemberRemoved, ...changed },
    detail: { operationId: 'removeMember', summary: 'Remove a member from a workspace' },
  })

const inviteRoutes = new Elysia({ tags: ['workspaces'] })
  .use(guard('workspaces'))
  .get('/invites', ({ ctx, query, request, set }) => invites.mine(ctx, query, { request, set }), {
    can: 'user',
    query,
    response: t.Array(Invitation),
    detail: {
      operationId: 'listInvitations',
      summary: 'List your invitations',
      description: 'Invitations sent to your verified e-mail address.',
    },
  })
  .post('/invites', ({ ctx, body }) => invites.reply(ctx, body), {
    can: 'user',
    body: InvitationAnswer,
    response: { 200: done, ...changed },
    detail: { operationId: 'answerInvitation', summary: 'Accept or decline an invitation' },
  })
  .post(
    '/workspaces/:id/invites',
    async ({ ctx, params, body }) => status(201, await invites.create(ctx, params.id, body)),
    {
      can: 'user',
      params: one,
      body: NewInvite,
      response: { 201: Invite, ...changed },
      detail: { operationId: 'createInvite', summary: 'Invite somebody to a workspace' },
    },
  )
  .delete('/workspaces/:id/invites/:inviteId', ({ ctx, params }) => invites.remove(ctx, params.id, params.inviteId), {
    can: 'user',
    params: t.Object({ id: t.String(), inviteId: t.String() }),
    response: { 200: done, 404: ProblemShape },
    detail: { operationId: 'deleteInvite', summary: 'Withdraw an invitation' },
  })

export const workspacesAndInvites = new Elysia().use(workspaceRoutes).use(memberRoutes).use(inviteRoutes)

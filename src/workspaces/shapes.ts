import { type Static, t } from 'elysia'
import { email, orEmpty, url } from '../accounts/shapes'
import { listParameter } from '../core/query-lists'
import { id, line, partialOf, time } from '../core/shapes'
import { listQuery } from '../storage/pagination'

const maybe = t.Optional
const roles = t.Array(line(100, 1), {
  maxItems: 50,
  uniqueItems: true,
  description: 'such as admin, user or member; admins manage the workspace',
})

export const Workspace = t.Object({
  _id: id,
  name: t.String(),
  logo: t.Nullable(t.String()),
  labels: t.Array(t.String()),
  isPrivilegedUser: t.Boolean({ description: 'whether the caller is an admin of the workspace' }),
  created: time,
  updated: time,
})

export const Member = t.Object({
  user: id,
  roles: t.Array(t.String()),
  created: time,
  fullName: t.String(),
  email: maybe(t.String({ description: 'visible only to admins of the workspace' })),
})

export const Invite = t.Object({
  _id: id,
  email: t.String(),
  name: t.Nullable(t.String()),
  roles: t.Array(t.String()),
  created: time,
})

const membersAndInvites = { members: t.Array(Member), invites: t.Array(Invite) }
export const WorkspaceDetails = t.Composite([Workspace, t.Object(membersAndInvites)])
export const ActivatedWorkspace = t.Composite([Workspace, t.Object({ roles: t.Array(t.String()) })])

/** A workspace in the list of all workspaces, with the selected fields. */
export const WorkspaceSummary = t.Composite([
  t.Pick(Workspace, ['_id']),
  t.Partial(t.Omit(Workspace, ['_id', 'isPrivilegedUser'])),
  t.Partial(t.Object({ tenant: t.String(), ...membersAndInvites })),
])

export const NewWorkspace = t.Object({
  name: line(200, 1),
  logo: maybe(orEmpty(url)),
  labels: maybe(t.Array(line(100, 1), { maxItems: 100 })),
})
export type NewWorkspace = Static<typeof NewWorkspace>

export const NewInvite = t.Object({ email, name: maybe(t.Nullable(line(200))), roles: maybe(roles) })
export type NewInvite = Static<typeof NewInvite>

export const WorkspaceChange = t.Composite([
  partialOf(NewWorkspace),
  t.Object({
    invites: maybe(
      t.Array(NewInvite, { maxItems: 1_000, description: 'complete list of invites; all others are withdrawn' }),
    ),
  }),
])
export type WorkspaceChange = Static<typeof WorkspaceChange>

export const NewMember = t.Object({ userId: id, roles })
export type NewMember = Static<typeof NewMember>
export const MemberChange = t.Object({ roles })

const message = t.String()
export const MemberAdded = t.Object({ message, workspace: WorkspaceDetails })
export const MemberChanged = t.Object({
  message,
  updatedMember: t.Object({ user: id, roles: t.Array(t.String()) }),
  workspaceId: id,
})
export const MemberRemoved = t.Object({ message, removedMemberId: id, userId: id })

export const WorkspaceRemoved = t.Object({
  success: t.Literal(true),
  entities: t.Number({ description: 'number of entities created in the workspace, which are retained' }),
})

export const WorkspacesQuery = t.Object({
  ...listQuery,
  'members.user': listParameter('user ids: workspaces with any of them as a member'),
  labels: listParameter('labels: workspaces with any of them'),
  name: maybe(t.String({ description: 'regular expression in RE2 syntax, case-insensitive' })),
  q: maybe(t.String({ description: 'text contained in the name or in an invite' })),
  _id: listParameter('ids'),
  select: listParameter('fields; default: name, logo, tenant, labels'),
})
export type WorkspacesQuery = Static<typeof WorkspacesQuery>

/** An invitation as the invited user sees it. */
export const Invitation = t.Object({
  _id: id,
  workspace: t.Object({ _id: id, name: t.String(), logo: t.Nullable(t.String()) }),
  roles: t.Array(t.String()),
  created: time,
})
export const InvitationAnswer = t.Object({ workspace: id, kind: t.Union([t.Literal('accept'), t.Literal('decline')]) })
export type InvitationAnswer = Static<typeof InvitationAnswer>

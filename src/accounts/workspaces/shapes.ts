import { type Static, t } from 'elysia'
import { change, id, line, time } from '../../core/shapes'
import { listing } from '../../storage/lists'
import { email, orNone, url } from '../shapes'

const maybe = t.Optional
const roles = t.Array(line(100, 1), {
  maxItems: 50,
  uniqueItems: true,
  description: 'such as admin, user, member; admins of a workspace manage it',
})

export const Workspace = t.Object({
  _id: id,
  name: t.String(),
  logo: t.Nullable(t.String()),
  labels: t.Array(t.String()),
  isPrivilegedUser: t.Boolean({ description: "whether the caller's roles in it include admin" }),
  created: time,
  updated: time,
})

export const Member = t.Object({
  user: id,
  roles: t.Array(t.String()),
  created: time,
  fullName: t.String(),
  email: maybe(t.String({ description: 'told to those who administer the workspace' })),
})

export const Invite = t.Object({
  _id: id,
  email: t.String(),
  name: t.Nullable(t.String()),
  roles: t.Array(t.String()),
  created: time,
})

const whole = { members: t.Array(Member), invites: t.Array(Invite) }
export const WholeWorkspace = t.Composite([Workspace, t.Object(whole)])
export const ActivatedWorkspace = t.Composite([Workspace, t.Object({ roles: t.Array(t.String()) })])

/** One of all that there are, with what was selected of it. */
export const SomeWorkspace = t.Composite([
  t.Pick(Workspace, ['_id']),
  t.Partial(t.Omit(Workspace, ['_id', 'isPrivilegedUser'])),
  t.Partial(t.Object({ tenant: t.String(), ...whole })),
])

export const NewWorkspace = t.Object({
  name: line(200, 1),
  logo: maybe(orNone(url)),
  labels: maybe(t.Array(line(100, 1), { maxItems: 100 })),
})
export type NewWorkspace = Static<typeof NewWorkspace>

export const NewInvite = t.Object({ email, name: maybe(t.Nullable(line(200))), roles: maybe(roles) })
export type NewInvite = Static<typeof NewInvite>

export const WorkspaceChange = t.Composite([
  change(NewWorkspace),
  t.Object({
    invites: maybe(t.Array(NewInvite, { maxItems: 1_000, description: 'all that are to be; others are withdrawn' })),
  }),
])
export type WorkspaceChange = Static<typeof WorkspaceChange>

export const NewMember = t.Object({ userId: id, roles })
export type NewMember = Static<typeof NewMember>
export const MemberChange = t.Object({ roles })

const message = t.String()
export const MemberAdded = t.Object({ message, workspace: WholeWorkspace })
export const MemberChanged = t.Object({
  message,
  updatedMember: t.Object({ user: id, roles: t.Array(t.String()) }),
  workspaceId: id,
})
export const MemberRemoved = t.Object({ message, removedMemberId: id, userId: id })

export const Removed = t.Object({
  success: t.Literal(true),
  entities: t.Number({ description: 'how many entities were made in it; they stay' }),
})

export const AllQuery = t.Object({
  ...listing,
  'members.user': maybe(t.String({ description: 'ids of users, comma-separated: of which any is a member' })),
  labels: maybe(t.String({ description: 'comma-separated, of which it has any' })),
  name: maybe(t.String({ description: 'a regular expression in the syntax of RE2, whatever the case' })),
  q: maybe(t.String({ description: 'what its name, or an invite to it, contains' })),
  _id: maybe(t.String({ description: 'ids, comma-separated' })),
  select: maybe(t.String({ description: 'fields, comma-separated; `name logo tenant labels` unless told' })),
})
export type AllQuery = Static<typeof AllQuery>

/** An invitation as the invited see it. */
export const Invitation = t.Object({
  _id: id,
  workspace: t.Object({ _id: id, name: t.String(), logo: t.Nullable(t.String()) }),
  roles: t.Array(t.String()),
  created: time,
})
export const InvitationAnswer = t.Object({ workspace: id, kind: t.Union([t.Literal('accept'), t.Literal('decline')]) })
export type InvitationAnswer = Static<typeof InvitationAnswer>

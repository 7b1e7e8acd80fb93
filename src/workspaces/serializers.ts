import { asc, eq, inArray } from 'drizzle-orm'
import { invites, members } from '../accounts/memberships/tables'
import type { WorkspaceAccess } from '../accounts/memberships/workspace-access'
import { users } from '../accounts/tables'
import { fullNameOf } from '../accounts/users/users'
import { toChunks } from '../core/chunks'
import type { Db } from '../storage/port'

/** Returns a workspace as it appears in a list. */
export const toWorkspace = ({ workspace, roles }: Pick<WorkspaceAccess, 'workspace' | 'roles'>) => ({
  ...workspace,
  isPrivilegedUser: roles.includes('admin'),
})

/** Returns a workspace with its members, and with its invites for callers who administer it. */
export async function loadWorkspaceDetails(db: Db, access: WorkspaceAccess) {
  const { workspace, administers } = access
  const [members, invites] = await Promise.all([
    findMembers(db, [workspace._id], administers),
    administers ? findInvites(db, [workspace._id]) : new Map(),
  ])
  return {
    ...toWorkspace(access),
    members: members.get(workspace._id) ?? [],
    invites: invites.get(workspace._id) ?? [],
  }
}

const WORKSPACES_PER_READ = 10 // each may have 1,000 members and 1,000 invites

/** Returns the rows of many workspaces without blocking other requests. */
async function readInChunks<Row>(db: Db, ids: string[], read: (ids: string[]) => PromiseLike<Row[]>) {
  const chunks: Row[][] = []
  for (const chunk of toChunks(ids, WORKSPACES_PER_READ)) {
    if (chunks.length) await db.yieldToOthers()
    chunks.push(await read(chunk))
  }
  return chunks.flat()
}

/** Returns the members of these workspaces, by workspace. */
export async function findMembers(db: Db, ids: string[], administers: boolean) {
  const rows = await readInChunks(db, ids, (chunk) =>
    selectMembers(db).where(inArray(members.workspace, chunk)).orderBy(asc(members.created), asc(members.user)),
  )
  return Map.groupBy(
    rows.map((row) => ({ workspace: row.workspace, ...toMember(administers, row) })),
    ({ workspace }) => workspace,
  )
}

/** Returns the invites of these workspaces, by workspace. */
export async function findInvites(db: Db, ids: string[]) {
  const rows = await readInChunks(db, ids, (chunk) =>
    db.select().from(invites).where(inArray(invites.workspace, chunk)).orderBy(asc(invites.created), asc(invites._id)),
  )
  return Map.groupBy(rows, ({ workspace }) => workspace)
}

/** Returns a query of members joined with their users. */
export const selectMembers = (db: Db) =>
  db
    .select({
      workspace: members.workspace,
      user: members.user,
      roles: members.roles,
      created: members.created,
      fullName: users.fullName,
      firstName: users.firstName,
      lastName: users.lastName,
      email: users.email,
    })
    .from(members)
    .innerJoin(users, eq(users._id, members.user))

type MemberRow = Awaited<ReturnType<typeof selectMembers>>[number]

/** Returns a member. Only callers who administer the workspace see e-mail addresses. */
export const toMember = (administers: boolean, row: MemberRow) => ({
  user: row.user,
  roles: row.roles,
  created: row.created,
  fullName: fullNameOf(row),
  ...(administers && { email: row.email ?? '' }),
})

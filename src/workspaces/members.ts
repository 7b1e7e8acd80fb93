import { and, eq } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import { members } from '../accounts/memberships/tables'
import { getWorkspaceAccess, requireWorkspaceAdmin } from '../accounts/memberships/workspace-access'
import { users } from '../accounts/tables'
import { now, toIsoString } from '../core/clock'
import { notFound, Problem } from '../core/problem'
import { applyPage, type ListQuery, parsePage, toListPage } from '../storage/pagination'
import type { Db, Tx } from '../storage/port'
import { writeInvalidating } from '../tenancy/cache'
import { assertMayGiveRoles, getCallerRestrictions } from './restrictions'
import { loadWorkspaceDetails, selectMembers, toMember } from './serializers'
import type { NewMember } from './shapes'

const MAX_MEMBERS_PER_WORKSPACE = 1_000 // the response of a workspace contains all of them

const sortable = { _id: members.user, user: members.user, created: members.created }

/**
 * Returns a page of a workspace's members, in the order in which they joined.
 * @throws 404 WORKSPACE_NOT_FOUND
 */
export async function list({ db, actor }: Ctx, id: string, query: ListQuery) {
  const page = parsePage(query, sortable, 'created')
  const { administers } = await getWorkspaceAccess(db, actor, id)
  const condition = eq(members.workspace, id)
  const rows = await applyPage(page, selectMembers(db).where(condition))
  const items = rows.map((row) => toMember(administers, row))
  return toListPage(page, items, () => db.$count(members, condition))
}

/**
 * Adds a user of the tenant as a member.
 * @throws 403 FORBIDDEN, RESTRICTED_ROLE, 404 WORKSPACE_NOT_FOUND, USER_NOT_FOUND
 * @throws 409 MEMBER_EXISTS, TOO_MANY_MEMBERS
 */
export async function add(ctx: Ctx, id: string, { userId, roles }: NewMember) {
  const restricted = await getCallerRestrictions(ctx)
  const access = await writeInvalidating(ctx, 'actors', async (tx) => {
    const access = await requireWorkspaceAdmin(tx, ctx.actor, id)
    const user = await tx.select({ _id: users._id }).from(users).where(eq(users._id, userId)).get()
    if (!user) notFound('user')
    if (await findMember(tx, id, userId))
      throw new Problem(409, 'MEMBER_EXISTS', 'This user is already a member. Change their roles instead.')
    assertMayGiveRoles(restricted, roles)
    await joinWorkspace(tx, id, userId, roles)
    return access
  })
  return { message: 'The user was added to the workspace.', workspace: await loadWorkspaceDetails(ctx.db, access) }
}

/**
 * Replaces a member's roles.
 * @throws 403 FORBIDDEN, RESTRICTED_ROLE, 404 WORKSPACE_NOT_FOUND, MEMBER_NOT_FOUND, 409 LAST_WORKSPACE_ADMIN
 */
export async function change(ctx: Ctx, id: string, user: string, roles: string[]) {
  const restricted = await getCallerRestrictions(ctx)
  await writeInvalidating(ctx, 'actors', async (tx) => {
    await requireWorkspaceAdmin(tx, ctx.actor, id)
    if (!roles.includes('admin')) await assertNotLastWorkspaceAdmin(tx, id, user)
    assertMayGiveRoles(restricted, roles, (await findMember(tx, id, user))?.roles)
    const changed = await tx.update(members).set({ roles }).where(matchesMember(id, user)).returning().get()
    if (!changed) notFound('member')
  })
  return { message: 'The roles were updated.', updatedMember: { user, roles }, workspaceId: id }
}

/**
 * Ends a membership; all members may end their own.
 * @throws 403 FORBIDDEN, 404 WORKSPACE_NOT_FOUND, MEMBER_NOT_FOUND, 409 LAST_WORKSPACE_ADMIN
 */
export async function remove(ctx: Ctx, id: string, user: string) {
  await writeInvalidating(ctx, 'actors', async (tx) => {
    await (user === ctx.actor.user ? getWorkspaceAccess : requireWorkspaceAdmin)(tx, ctx.actor, id)
    await assertNotLastWorkspaceAdmin(tx, id, user)
    if (!(await tx.delete(members).where(matchesMember(id, user)).returning().get())) notFound('member')
  })
  return { message: 'The user was removed from the workspace.', removedMemberId: user, userId: user }
}

/** Adds roles to a user's membership, which is created if needed. @throws 409 TOO_MANY_MEMBERS */
export async function joinWorkspace(tx: Tx, workspace: string, user: string, roles: string[]) {
  const before = await findMember(tx, workspace, user)
  if (before) {
    const allRoles = [...new Set([...before.roles, ...roles])]
    await tx.update(members).set({ roles: allRoles }).where(matchesMember(workspace, user))
    return
  }
  if ((await tx.$count(members, eq(members.workspace, workspace))) >= MAX_MEMBERS_PER_WORKSPACE)
    throw new Problem(
      409,
      'TOO_MANY_MEMBERS',
      `A workspace has at most ${MAX_MEMBERS_PER_WORKSPACE} members. Remove some first.`,
    )
  await tx.insert(members).values({ workspace, user, roles, created: toIsoString(now()) })
}

/** Returns the membership of a user in a workspace, or undefined. */
export const findMember = (db: Db, workspace: string, user: string) =>
  db.select().from(members).where(matchesMember(workspace, user)).get()

const matchesMember = (workspace: string, user: string) => and(eq(members.workspace, workspace), eq(members.user, user))

/**
 * It runs in the writing transaction, so that two concurrent calls cannot each rely on the other admin.
 * @throws 409 LAST_WORKSPACE_ADMIN
 */
async function assertNotLastWorkspaceAdmin(tx: Tx, workspace: string, user: string) {
  const allMembers = await tx.select().from(members).where(eq(members.workspace, workspace))
  const admins = allMembers.filter(({ roles }) => roles.includes('admin'))
  if (admins.length === 1 && admins[0]!.user === user)
    throw new Problem(
      409,
      'LAST_WORKSPACE_ADMIN',
      'This is the last admin of the workspace. Make another member an admin first.',
    )
}

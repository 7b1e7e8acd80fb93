import { and, eq } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import type { Answer } from '../../core/etag'
import { missing, Problem } from '../../core/problem'
import { answerPage, type Listing, paged, pageOf } from '../../storage/lists'
import type { Db, Tx } from '../../storage/port'
import { changing } from '../../tenancy/memory'
import type { Ctx } from '../guard'
import { users } from '../tables'
import { administered, reach } from './reach'
import { assertMayGiveRoles, restrictionsFor } from './restrictions'
import type { NewMember } from './shapes'
import { membersShown, shownTo, whole } from './shown'
import { members } from './tables'

const MOST = 1_000 // of a workspace, which shows them whole

const sortable = { _id: members.user, user: members.user, created: members.created }

/** A page of a workspace's members, in the order in which they came. */
export async function list({ db, actor }: Ctx, id: string, query: Listing, answer: Answer) {
  const page = pageOf(query, sortable, 'created')
  const { administers } = await reach(db, actor, id)
  const those = eq(members.workspace, id)
  const rows = await paged(page, membersShown(db).where(those))
  const shown = rows.map((row) => shownTo(administers, row))
  return answerPage(answer, page, shown, () => db.$count(members, those))
}

/** Makes a user of the tenant a member. @throws 403, 404, 409 MEMBER_EXISTS, TOO_MANY_MEMBERS */
export async function add(ctx: Ctx, id: string, { userId, roles }: NewMember) {
  const restricted = await restrictionsFor(ctx)
  const reached = await changing(ctx, 'actors', async (tx) => {
    const reached = await administered(tx, ctx.actor, id)
    const user = await tx.select({ _id: users._id }).from(users).where(eq(users._id, userId)).get()
    if (!user) missing('user')
    if (await memberOf(tx, id, userId))
      throw new Problem(409, 'MEMBER_EXISTS', 'This user is a member already. Change their roles instead.')
    assertMayGiveRoles(restricted, roles)
    await join(tx, id, userId, roles)
    return reached
  })
  return { message: 'The user is a member now.', workspace: await whole(ctx.db, reached) }
}

/** Replaces a member's roles. @throws 403, 404, 409 LAST_WORKSPACE_ADMIN */
export async function change(ctx: Ctx, id: string, user: string, roles: string[]) {
  const restricted = await restrictionsFor(ctx)
  await changing(ctx, 'actors', async (tx) => {
    await administered(tx, ctx.actor, id)
    if (!roles.includes('admin')) await refuseLastAdmin(tx, id, user)
    assertMayGiveRoles(restricted, roles, (await memberOf(tx, id, user))?.roles)
    const changed = await tx.update(members).set({ roles }).where(one(id, user)).returning().get()
    if (!changed) missing('member')
  })
  return { message: 'The roles are changed.', updatedMember: { user, roles }, workspaceId: id }
}

/** Ends a membership; everybody may end their own. @throws 403, 404, 409 LAST_WORKSPACE_ADMIN */
export async function remove(ctx: Ctx, id: string, user: string) {
  await changing(ctx, 'actors', async (tx) => {
    await (user === ctx.actor.user ? reach : administered)(tx, ctx.actor, id)
    await refuseLastAdmin(tx, id, user)
    if (!(await tx.delete(members).where(one(id, user)).returning().get())) missing('member')
  })
  return { message: 'The user is no member any more.', removedMemberId: user, userId: user }
}

/** Gives somebody these roles in a workspace, beside those that they have. @throws 409 TOO_MANY_MEMBERS */
export async function join(tx: Tx, workspace: string, user: string, roles: string[]) {
  const before = await memberOf(tx, workspace, user)
  if (before) {
    const all = [...new Set([...before.roles, ...roles])]
    await tx.update(members).set({ roles: all }).where(one(workspace, user))
    return
  }
  if ((await tx.$count(members, eq(members.workspace, workspace))) >= MOST)
    throw new Problem(409, 'TOO_MANY_MEMBERS', `A workspace has at most ${MOST} members. Remove some first.`)
  await tx.insert(members).values({ workspace, user, roles, created: iso(now()) })
}

export const memberOf = (db: Db, workspace: string, user: string) =>
  db.select().from(members).where(one(workspace, user)).get()

const one = (workspace: string, user: string) => and(eq(members.workspace, workspace), eq(members.user, user))

/** In the writing transaction, so that two at once can't both find that another is left. */
async function refuseLastAdmin(tx: Tx, workspace: string, user: string) {
  const all = await tx.select().from(members).where(eq(members.workspace, workspace))
  const admins = all.filter(({ roles }) => roles.includes('admin'))
  if (admins.length === 1 && admins[0]!.user === user)
    throw new Problem(409, 'LAST_WORKSPACE_ADMIN', 'This is the last admin of the workspace. Make another one first.')
}

import { and, eq, inArray } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import { assertMailQuota, queueMail } from '../accounts/mail/mails'
import { invites, members, workspaces } from '../accounts/memberships/tables'
import {
  assertWorkspacesActive,
  boundWorkspaceCondition,
  isOtherWorkspace,
  requireWorkspaceAdmin,
} from '../accounts/memberships/workspace-access'
import { type UserRow, users } from '../accounts/tables'
import { fullNameOf, getUser } from '../accounts/users/users'
import { config } from '../config'
import { toChunks } from '../core/chunks'
import { HOUR_MS, now, toIsoString } from '../core/clock'
import { badRequest, notFound, Problem, tooManyRequests } from '../core/problem'
import { RateLimiter } from '../core/rate-limiter'
import { success } from '../core/shapes'
import { toAddressKey } from '../core/text-normalization'
import { isMailEnabled } from '../platform/mail/smtp'
import { applyPage, type ListQuery, parsePage, toListPage } from '../storage/pagination'
import type { Tx } from '../storage/port'
import { writeInvalidating } from '../tenancy/cache'
import { emitWorkspaceEvent } from './events'
import { joinWorkspace } from './members'
import { assertMayGiveRoles, getCallerRestrictions, type Restrictions } from './restrictions'
import type { InvitationAnswer, NewInvite } from './shapes'

const MAX_INVITES = 1_000 // per workspace, whose response contains all; and per user and hour, as each sends a mail
const VALUES_PER_STATEMENT = 200 // ids or addresses in one statement
const inviteLimiter = new RateLimiter(MAX_INVITES, HOUR_MS)

/**
 * Returns whether the e-mail address of a user counts. Without mail nobody can verify an address, so every one counts.
 */
const isAddressProven = ({ emailVerified }: UserRow) => emailVerified || !isMailEnabled()

const sortable = { _id: invites._id, created: invites.created }

/** Returns a page of the caller's invitations, newest first. */
export async function listMine(ctx: Ctx, query: ListQuery) {
  const page = parsePage(query, sortable)
  const user = await getUser(ctx, ctx.actor.user)
  const condition = and(
    eq(invites.emailKey, (isAddressProven(user) && user.emailKey) || ''),
    boundWorkspaceCondition(ctx.actor, invites.workspace),
  )
  const rows = await applyPage(
    page,
    ctx.db
      .select({
        _id: invites._id,
        roles: invites.roles,
        created: invites.created,
        workspace: workspaces._id,
        name: workspaces.name,
        logo: workspaces.logo,
      })
      .from(invites)
      .innerJoin(workspaces, eq(workspaces._id, invites.workspace))
      .where(condition),
  )
  const invitations = rows.map(({ workspace, name, logo, ...invite }) => ({
    ...invite,
    workspace: { _id: workspace, name, logo },
  }))
  return toListPage(page, invitations, () => ctx.db.$count(invites, condition))
}

/**
 * Accepts an invitation, which makes the caller a member with its roles, or declines it. Both delete it.
 * @throws 403 WORKSPACES_INACTIVE, or RESTRICTED_ROLE also for roles that have been restricted since
 * @throws 404 INVITE_NOT_FOUND, 409 EMAIL_NOT_VERIFIED, TOO_MANY_MEMBERS
 */
export async function answerInvitation(ctx: Ctx, { workspace, kind }: InvitationAnswer) {
  if (isOtherWorkspace(ctx.actor, workspace)) notFound('invite')
  if (kind === 'accept') await assertWorkspacesActive(ctx)
  const restricted = await getCallerRestrictions(ctx)
  await writeInvalidating(ctx, 'actors', async (tx) => {
    const user = await tx.select().from(users).where(eq(users._id, ctx.actor.user)).get()
    const condition = and(eq(invites.workspace, workspace), eq(invites.emailKey, user?.emailKey ?? ''))
    const invite = user && (await tx.select().from(invites).where(condition).get())
    if (!invite) return explainMissingInvite(tx, workspace, user)
    if (!isAddressProven(user)) throw emailNotVerified(`Confirm ${invite.email} first: ${HOW_TO_VERIFY}`)
    if (!(await tx.delete(invites).where(condition).returning().get())) return notFound('invite')
    if (kind === 'accept') {
      assertMayGiveRoles(restricted, invite.roles, invite.grantedRoles)
      await joinWorkspace(tx, workspace, user._id, invite.roles)
    }
    const eventName = kind === 'accept' ? 'invite-accepted' : 'invite-declined'
    await emitWorkspaceEvent(ctx, tx, workspace, { kind: 'invite', eventName }, toEventMetadata(invite))
  })
  return success
}

const HOW_TO_VERIFY = 'POST /api/email/verification sends a code to it, and POST /api/email/verify takes the code.'

const emailNotVerified = (message: string) => new Problem(409, 'EMAIL_NOT_VERIFIED', message)

/**
 * @throws 409 EMAIL_NOT_VERIFIED when the username or the pending e-mail address is the invited address
 * @throws 404 INVITE_NOT_FOUND otherwise
 */
async function explainMissingInvite(tx: Tx, workspace: string, user: UserRow | undefined): Promise<never> {
  const pendingKey = user?.pendingEmail ? toAddressKey(user.pendingEmail) : ''
  const keys = [user?.usernameKey ?? '', pendingKey].filter((key) => key !== '')
  const condition = and(eq(invites.workspace, workspace), inArray(invites.emailKey, keys))
  const invite = keys.length ? await tx.select().from(invites).where(condition).limit(1).get() : undefined
  if (!invite) return notFound('invite')
  throw emailNotVerified(
    invite.emailKey === pendingKey
      ? `Confirm ${invite.email} first: ${HOW_TO_VERIFY}`
      : `Add ${invite.email} to your profile as its email first (POST /api/me), and confirm it: ${HOW_TO_VERIFY}`,
  )
}

/**
 * Invites an e-mail address.
 * @throws 403 FORBIDDEN, QUOTA_EXCEEDED, RESTRICTED_ROLE, 404 WORKSPACE_NOT_FOUND, 409 INVITE_EXISTS, MEMBER_EXISTS, TOO_MANY_INVITES
 * @throws 429 RATE_LIMITED
 */
export async function create(ctx: Ctx, workspace: string, input: NewInvite) {
  await assertMailQuota(ctx)
  const restricted = await getCallerRestrictions(ctx)
  return ctx.write(async (tx) => {
    await requireWorkspaceAdmin(tx, ctx.actor, workspace)
    const emailKey = toAddressKey(input.email)
    if ((await findMemberKeys(tx, workspace, [emailKey])).size)
      throw new Problem(409, 'MEMBER_EXISTS', 'A user with this e-mail address is already a member.')
    const condition = and(eq(invites.workspace, workspace), eq(invites.emailKey, emailKey))
    if (await tx.select({ _id: invites._id }).from(invites).where(condition).get())
      throw new Problem(409, 'INVITE_EXISTS', 'This address has already been invited.')
    if ((await tx.$count(invites, eq(invites.workspace, workspace))) >= MAX_INVITES)
      throw new Problem(409, 'TOO_MANY_INVITES', `A workspace has at most ${MAX_INVITES} invites. Withdraw some first.`)
    assertMayGiveRoles(restricted, input.roles ?? DEFAULT_ROLES)
    const invite = await tx
      .insert(invites)
      .values(toInviteRow(ctx, workspace, input))
      .returning()
      .get()
    await announceInvites(ctx, tx, workspace, [invite])
    return invite
  })
}

/**
 * Withdraws an invitation.
 * @throws 403 FORBIDDEN, 404 WORKSPACE_NOT_FOUND, INVITE_NOT_FOUND
 */
export async function remove(ctx: Ctx, workspace: string, id: string) {
  await ctx.write(async (tx) => {
    await requireWorkspaceAdmin(tx, ctx.actor, workspace)
    const condition = and(eq(invites._id, id), eq(invites.workspace, workspace))
    if (!(await tx.delete(invites).where(condition).returning().get())) notFound('invite')
  })
  return success
}

/**
 * Replaces all invites of a workspace. An invite to the same address is kept and updated; addresses of members are
 * skipped.
 * @throws 400 INVALID_INPUT for a duplicate address, 403 RESTRICTED_ROLE, 429 RATE_LIMITED
 */
export async function replaceInvites(
  ctx: Ctx,
  tx: Tx,
  workspace: string,
  wanted: NewInvite[],
  restricted: Restrictions,
) {
  const byKey = new Map(wanted.map((invite) => [toAddressKey(invite.email), invite]))
  if (byKey.size < wanted.length) badRequest({ path: '/invites', message: 'An address can be invited only once.' })
  const before = await tx.select().from(invites).where(eq(invites.workspace, workspace))
  const removedIds = before.filter(({ emailKey }) => !byKey.has(emailKey)).map(({ _id }) => _id)
  for (const chunk of toChunks(removedIds, VALUES_PER_STATEMENT))
    await tx.delete(invites).where(inArray(invites._id, chunk))
  const changes: unknown[][] = []
  for (const { _id, emailKey, ...old } of before) {
    const invite = byKey.get(emailKey)
    if (!invite) continue
    byKey.delete(emailKey)
    const { email, name = old.name, roles = old.roles } = invite
    assertMayGiveRoles(restricted, roles, old.roles)
    const granted = filterGrantedRoles(ctx, roles, old.grantedRoles)
    if (email !== old.email || name !== old.name || !Bun.deepEquals([roles, granted], [old.roles, old.grantedRoles]))
      changes.push([email, name, JSON.stringify(roles), JSON.stringify(granted), _id])
  }
  const memberKeys = await findMemberKeys(tx, workspace, [...byKey.keys()])
  const newInvites = [...byKey].filter(([key]) => !memberKeys.has(key)).map(([, invite]) => invite)
  for (const invite of newInvites) assertMayGiveRoles(restricted, invite.roles ?? DEFAULT_ROLES)
  const added = newInvites.map((invite) => toInviteRow(ctx, workspace, invite))
  await tx.executeMany('update invites set email = ?, name = ?, roles = ?, granted_roles = ? where _id = ?', changes)
  await tx.executeMany(
    'insert into invites (_id, workspace, email_key, email, name, roles, granted_roles, created) values (?, ?, ?, ?, ?, ?, ?, ?)',
    added.map(({ _id, emailKey, email, name, roles, grantedRoles, created }) => [
      ...[_id, workspace, emailKey, email, name],
      ...[JSON.stringify(roles), JSON.stringify(grantedRoles), Date.parse(created)],
    ]),
  )
  await announceInvites(ctx, tx, workspace, added)
}

type InviteRow = typeof invites.$inferSelect

/**
 * Emits an event and queues a mail for each new invite.
 * @throws 429 RATE_LIMITED
 */
async function announceInvites(ctx: Ctx, tx: Tx, workspace: string, added: InviteRow[]) {
  if (!added.length) return
  const wait =
    isMailEnabled() &&
    config.ATOLL_RATE_LIMITS === 'on' &&
    inviteLimiter.consume(`${ctx.tenant} ${ctx.actor.user}`, added.length)
  if (wait) tooManyRequests(wait / 1000, `You can send at most ${MAX_INVITES} invitations per hour.`)
  const { name } = (await tx
    .select({ name: workspaces.name })
    .from(workspaces)
    .where(eq(workspaces._id, workspace))
    .get())!
  const user = (await tx.select().from(users).where(eq(users._id, ctx.actor.user)).get()) ?? notFound('user')
  const data = { workspace: name, inviter: fullNameOf(user) || user.username }
  const mails = added.map((invite) => ({
    ...{ to: invite.email, template: 'invitation' as const },
    data: { ...data, ...(invite.name && { name: invite.name }) },
  }))
  await queueMail(ctx, tx, ...mails)
  const event = { kind: 'invite', eventName: 'invite-created' } as const
  await Promise.all(added.map((invite) => emitWorkspaceEvent(ctx, tx, workspace, event, toEventMetadata(invite))))
}

const toEventMetadata = ({ _id, email, name, roles }: InviteRow) => ({ invite: _id, email, name, roles })

const DEFAULT_ROLES = ['member']

/** Returns the roles of an invite that an admin of the tenant has given, now or before. */
const filterGrantedRoles = ({ actor }: Ctx, roles: string[], before: string[] = []) =>
  actor.privileged ? roles : roles.filter((role) => before.includes(role))

const toInviteRow = (ctx: Ctx, workspace: string, { email, name = null, roles = DEFAULT_ROLES }: NewInvite) => ({
  _id: Bun.randomUUIDv7(),
  workspace,
  emailKey: toAddressKey(email),
  email,
  name,
  roles,
  grantedRoles: filterGrantedRoles(ctx, roles),
  created: toIsoString(now()),
})

/** Returns those of the addresses that belong to members. */
async function findMemberKeys(tx: Tx, workspace: string, keys: string[]) {
  const memberKeys = new Set<string>()
  for (const chunk of toChunks(keys, VALUES_PER_STATEMENT)) {
    const rows = await tx
      .select({ key: users.emailKey })
      .from(users)
      .innerJoin(members, and(eq(members.user, users._id), eq(members.workspace, workspace)))
      .where(inArray(users.emailKey, chunk))
    for (const { key } of rows) memberKeys.add(key!)
  }
  return memberKeys
}

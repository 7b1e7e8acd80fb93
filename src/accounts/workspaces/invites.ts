import { and, eq, inArray } from 'drizzle-orm'
import { config } from '../../config'
import { iso, now } from '../../core/clock'
import type { Answer } from '../../core/etag'
import { Limiter } from '../../core/limiter'
import { invalid, missing, Problem, tooMany } from '../../core/problem'
import { success } from '../../core/shapes'
import { answerPage, type Listing, paged, pageOf } from '../../storage/lists'
import type { Tx } from '../../storage/port'
import { changing } from '../../tenancy/memory'
import type { Ctx } from '../guard'
import { post } from '../mail/mails'
import { sendsMail } from '../mail/transport'
import { type UserRow, users } from '../tables'
import { find, fullNameOf, keyOfName } from '../users'
import { tell } from './events'
import { join } from './members'
import { administered, isElsewhere, refuseInactive, within } from './reach'
import { assertMayGiveRoles, type Restrictions, restrictionsFor } from './restrictions'
import type { InvitationAnswer, NewInvite } from './shapes'
import { invites, members, workspaces } from './tables'

const MOST = 1_000 // of a workspace, which shows them whole; and of a user in an hour, for each is a mail to anybody
const limiter = new Limiter(MOST, 3_600_000)

/** Whether somebody's address counts. As long as no mail is sent, nobody can prove that one is theirs. */
const isProven = ({ emailVerified }: UserRow) => emailVerified || !sendsMail()

const sortable = { _id: invites._id, created: invites.created }

/** A page of the invitations to the caller, newest first. */
export async function mine(ctx: Ctx, query: Listing, answer: Answer) {
  const page = pageOf(query, sortable)
  const user = await find(ctx, ctx.actor.user)
  const those = and(eq(invites.emailKey, (isProven(user) && user.emailKey) || ''), within(ctx.actor, invites.workspace))
  const rows = await paged(
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
      .where(those),
  )
  const shown = rows.map(({ workspace, name, logo, ...invite }) => ({
    ...invite,
    workspace: { _id: workspace, name, logo },
  }))
  return answerPage(answer, page, shown, () => ctx.db.$count(invites, those))
}

/**
 * Accepts an invitation, which gives its roles, or declines it; both end it.
 * @throws 403 also for roles that were restricted since, 404, 409 EMAIL_NOT_VERIFIED
 */
export async function reply(ctx: Ctx, { workspace, kind }: InvitationAnswer) {
  if (isElsewhere(ctx.actor, workspace)) missing('invite')
  if (kind === 'accept') await refuseInactive(ctx)
  const restricted = await restrictionsFor(ctx)
  await changing(ctx, 'actors', async (tx) => {
    const user = await tx.select().from(users).where(eq(users._id, ctx.actor.user)).get()
    const those = and(eq(invites.workspace, workspace), eq(invites.emailKey, user?.emailKey ?? ''))
    const invite = user && (await tx.select().from(invites).where(those).get())
    if (!invite) return explainMissingInvite(tx, workspace, user)
    if (!isProven(user)) throw notVerified(`Confirm ${invite.email} first: ${HOW_TO_VERIFY}`)
    if (!(await tx.delete(invites).where(those).returning().get())) return missing('invite')
    if (kind === 'accept') {
      assertMayGiveRoles(restricted, invite.roles, invite.grantedRoles)
      await join(tx, workspace, user._id, invite.roles)
    }
    const eventName = kind === 'accept' ? 'invite-accepted' : 'invite-declined'
    await tell(ctx, tx, workspace, { kind: 'invite', eventName }, detailsOf(invite))
  })
  return success
}

const HOW_TO_VERIFY = 'POST /api/email/verification sends a code to it, and POST /api/email/verify takes the code.'

const notVerified = (message: string) => new Problem(409, 'EMAIL_NOT_VERIFIED', message)

/** Tells who signs in by the invited address, or waits for its confirmation, what is missing. @throws 404, 409 EMAIL_NOT_VERIFIED */
async function explainMissingInvite(tx: Tx, workspace: string, user: UserRow | undefined): Promise<never> {
  const waiting = user?.pendingEmail ? keyOfName(user.pendingEmail) : ''
  const keys = [user?.usernameKey ?? '', waiting].filter((key) => key !== '')
  const those = and(eq(invites.workspace, workspace), inArray(invites.emailKey, keys))
  const invite = keys.length ? await tx.select().from(invites).where(those).limit(1).get() : undefined
  if (!invite) return missing('invite')
  throw notVerified(
    invite.emailKey === waiting
      ? `Confirm ${invite.email} first: ${HOW_TO_VERIFY}`
      : `Add ${invite.email} to your profile as its email first (POST /api/me), and confirm it: ${HOW_TO_VERIFY}`,
  )
}

/** Invites who has an address. @throws 403, 404, 409 INVITE_EXISTS, MEMBER_EXISTS, TOO_MANY_INVITES */
export async function create(ctx: Ctx, workspace: string, input: NewInvite) {
  const restricted = await restrictionsFor(ctx)
  return ctx.write(async (tx) => {
    await administered(tx, ctx.actor, workspace)
    const emailKey = keyOfName(input.email)
    if ((await keysOfMembers(tx, workspace, [emailKey])).size)
      throw new Problem(409, 'MEMBER_EXISTS', 'Who has this address is a member already.')
    const those = and(eq(invites.workspace, workspace), eq(invites.emailKey, emailKey))
    if (await tx.select({ _id: invites._id }).from(invites).where(those).get())
      throw new Problem(409, 'INVITE_EXISTS', 'This address is invited already.')
    if ((await tx.$count(invites, eq(invites.workspace, workspace))) >= MOST)
      throw new Problem(409, 'TOO_MANY_INVITES', `A workspace has at most ${MOST} invites. Withdraw some first.`)
    assertMayGiveRoles(restricted, input.roles ?? DEFAULT_ROLES)
    const invite = await tx
      .insert(invites)
      .values(fresh(ctx, workspace, input))
      .returning()
      .get()
    await sendTo(ctx, tx, workspace, [invite])
    return invite
  })
}

/** Withdraws an invitation. @throws 403, 404 */
export async function remove(ctx: Ctx, workspace: string, id: string) {
  await ctx.write(async (tx) => {
    await administered(tx, ctx.actor, workspace)
    const those = and(eq(invites._id, id), eq(invites.workspace, workspace))
    if (!(await tx.delete(invites).where(those).returning().get())) missing('invite')
  })
  return success
}

/** Makes these all the invites of a workspace. One to the same address stays the same; who is a member is left out. */
export async function replaceInvites(
  ctx: Ctx,
  tx: Tx,
  workspace: string,
  wanted: NewInvite[],
  restricted: Restrictions,
) {
  const byKey = new Map(wanted.map((invite) => [keyOfName(invite.email), invite]))
  if (byKey.size < wanted.length) invalid({ path: '/invites', message: 'An address is invited twice.' })
  const before = await tx.select().from(invites).where(eq(invites.workspace, workspace))
  const gone = before.filter(({ emailKey }) => !byKey.has(emailKey)).map(({ _id }) => _id)
  for (const some of slices(gone)) await tx.delete(invites).where(inArray(invites._id, some))
  const changes: unknown[][] = []
  for (const { _id, emailKey, ...old } of before) {
    const invite = byKey.get(emailKey)
    if (!invite) continue
    byKey.delete(emailKey)
    const { email, name = old.name, roles = old.roles } = invite
    assertMayGiveRoles(restricted, roles, old.roles)
    const granted = grantedRolesOf(ctx, roles, old.grantedRoles)
    if (email !== old.email || name !== old.name || !Bun.deepEquals([roles, granted], [old.roles, old.grantedRoles]))
      changes.push([email, name, JSON.stringify(roles), JSON.stringify(granted), _id])
  }
  const present = await keysOfMembers(tx, workspace, [...byKey.keys()])
  const wantedNow = [...byKey].filter(([key]) => !present.has(key)).map(([, invite]) => invite)
  for (const invite of wantedNow) assertMayGiveRoles(restricted, invite.roles ?? DEFAULT_ROLES)
  const added = wantedNow.map((invite) => fresh(ctx, workspace, invite))
  await tx.each('update invites set email = ?, name = ?, roles = ?, granted_roles = ? where _id = ?', changes)
  await tx.each(
    'insert into invites (_id, workspace, email_key, email, name, roles, granted_roles, created) values (?, ?, ?, ?, ?, ?, ?, ?)',
    added.map(({ _id, emailKey, email, name, roles, grantedRoles, created }) => [
      ...[_id, workspace, emailKey, email, name],
      ...[JSON.stringify(roles), JSON.stringify(grantedRoles), Date.parse(created)],
    ]),
  )
  await sendTo(ctx, tx, workspace, added)
}

type InviteRow = typeof invites.$inferSelect

/** Writes down whom the caller has invited, and has mail sent to them. */
async function sendTo(ctx: Ctx, tx: Tx, workspace: string, added: InviteRow[]) {
  if (!added.length) return
  const wait =
    sendsMail() && config.ATOLL_RATE_LIMITS === 'on' && limiter.take(`${ctx.tenant} ${ctx.actor.user}`, added.length)
  if (wait) tooMany(wait / 1000, `Nobody invites more than ${MOST} in an hour.`)
  const { name } = (await tx
    .select({ name: workspaces.name })
    .from(workspaces)
    .where(eq(workspaces._id, workspace))
    .get())!
  const user = (await tx.select().from(users).where(eq(users._id, ctx.actor.user)).get()) ?? missing('user')
  const data = { workspace: name, inviter: fullNameOf(user) || user.username }
  const mails = added.map((invite) => ({
    ...{ to: invite.email, template: 'invitation' as const },
    data: { ...data, ...(invite.name && { name: invite.name }) },
  }))
  await post(ctx, tx, ...mails)
  const event = { kind: 'invite', eventName: 'invite-created' } as const
  await Promise.all(added.map((invite) => tell(ctx, tx, workspace, event, detailsOf(invite))))
}

const detailsOf = ({ _id, email, name, roles }: InviteRow) => ({ invite: _id, email, name, roles })

const DEFAULT_ROLES = ['member']

/** Which roles of an invite come from an admin of the tenant, now or before. */
const grantedRolesOf = ({ actor }: Ctx, roles: string[], before: string[] = []) =>
  actor.privileged ? roles : roles.filter((role) => before.includes(role))

const fresh = (ctx: Ctx, workspace: string, { email, name = null, roles = DEFAULT_ROLES }: NewInvite) => ({
  _id: Bun.randomUUIDv7(),
  workspace,
  emailKey: keyOfName(email),
  email,
  name,
  roles,
  grantedRoles: grantedRolesOf(ctx, roles),
  created: iso(now()),
})

/** Which of these addresses members have. */
async function keysOfMembers(tx: Tx, workspace: string, keys: string[]) {
  const found = new Set<string>()
  for (const some of slices(keys)) {
    const rows = await tx
      .select({ key: users.emailKey })
      .from(users)
      .innerJoin(members, and(eq(members.user, users._id), eq(members.workspace, workspace)))
      .where(inArray(users.emailKey, some))
    for (const { key } of rows) found.add(key!)
  }
  return found
}

const slices = <Item>(all: Item[], size = 200) =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, n) => all.slice(n * size, (n + 1) * size))

import { type Answer, forbidKeeping } from '../core/etag'
import { invalid, Problem } from '../core/problem'
import { success } from '../core/shapes'
import type { Tx } from '../storage/port'
import { addressOf, networkOf } from '../tenancy/caller'
import type { Tenant } from '../tenancy/tenants'
import { issueAccess } from './access'
import { type ActiveWorkspace, workspaceOf } from './actors'
import { clearCookie, cookieOf, setCookie } from './cookies'
import { deviceCookie, findKnownDevice } from './devices'
import type { Ctx } from './guard'
import { askToVerify } from './mail/verification'
import { giveOnce, lookAt, takeOnce } from './one-time'
import { hashNewcomersPassword, isOutdated, verifyPassword } from './passwords'
import { isPrivileged } from './permissions'
import * as sessions from './sessions'
import { settingsOf } from './settings'
import type { Registration, SignIn } from './shapes'
import { countSignup } from './signup-throttle'
import type { UserRow } from './tables'
import { countAttempt, noteSuccess } from './throttle'
import { spending } from './totp/spending'
import { counted, isEnabled, wrong } from './totp/totp'
import { find, findByName, keepHashOf, keyOfName, register, shown } from './users'
import { tellUser } from './users/events'
import { reach } from './workspaces/reach'

/** Begins a session for who knows the password. @throws 401 INVALID_CREDENTIALS whatever was wrong; 404 for a workspace out of reach; 429. */
export async function signIn(tenant: Tenant, input: SignIn, answer: Answer): ReturnType<typeof started> {
  const { username, password, authType, workspace, challenge, code, refreshToken } = input
  if (challenge !== undefined) return answered(tenant, challenge, code, answer)
  if (username === undefined || password === undefined) return incomplete(input)
  const user = await findByName(tenant, username)
  const account = user?.usernameKey ?? keyOfName(username)
  const device = await findKnownDevice(answer.request, tenant, user?._id ?? '', refreshToken)
  const subjects = { account, address: networkOf(answer.request), device, telling: { user: user?._id } }
  if (!(await verifyPassword(tenant, password, user?.password, () => countAttempt(tenant, subjects)))) {
    throw new Problem(401, 'INVALID_CREDENTIALS', 'The username or the password is not right.')
  }
  await noteSuccess(tenant, subjects)
  const current = isOutdated(user!.password) ? await keepHashOf(tenant, user!, password) : user!
  // Another sign-in was faster to hash it anew, or the password is another one now.
  if (!current) return signIn(tenant, input, answer)
  if (workspace) await reach(tenant.db, { user: current._id, privileged: isPrivileged(current.roles) }, workspace)
  return enter(tenant, current, authType, answer, workspace)
}

const incomplete = (input: SignIn) =>
  invalid(
    ...(['username', 'password'] as const)
      .filter((name) => input[name] === undefined)
      .map((name) => ({ path: `/${name}`, message: `${name} is required.` })),
  )

/** Lets in who has shown who they are, unless they have a second factor. @throws 401 SECOND_FACTOR_REQUIRED */
export async function enter(
  tenant: Tenant,
  user: UserRow,
  authType: SignIn['authType'],
  answer: Answer,
  workspace?: string,
) {
  if (!(await isEnabled(tenant, user._id))) return started(tenant, user, authType, answer, workspace)
  const data = { ...(authType && { authType }), ...(workspace && { workspace }) }
  const challenge = await tenant.write((tx) => giveOnce(tx, 'secondFactor', user._id, data))
  throw new Problem(401, 'SECOND_FACTOR_REQUIRED', 'Sign in once more, with this challenge and a code.', {
    details: { challenge },
    headers: { 'cache-control': 'no-store' },
  })
}

/** Goes on with a sign-in by the second factor. @throws 401 INVALID_CHALLENGE, INVALID_CODE; 429 */
async function answered(tenant: Tenant, challenge: string, code = '', answer: Answer) {
  const known = (await lookAt(tenant.db, 'secondFactor', challenge)) ?? tooLate()
  const subjects = await counted(tenant, known.user, answer.request)
  const spent = await spending(tenant, known.user, code)
  const user = await find(tenant, known.user)
  await tenant.write(async (tx) => {
    if (!(await spent(tx))) throw wrong(401)
    if (!(await takeOnce(tx, 'secondFactor', challenge))) tooLate()
  })
  await noteSuccess(tenant, subjects)
  const { authType, workspace } = known.data
  return started(tenant, user, authType as SignIn['authType'], answer, workspace)
}

/** @throws 401 INVALID_CHALLENGE */
export const tooLate = (): never => {
  throw new Problem(401, 'INVALID_CHALLENGE', 'This sign-in took too long, or was ended. Begin anew.')
}

/** Makes a user and signs them in. @throws 403 SIGNUP_CLOSED, 409 USERNAME_EXISTS, EMAIL_EXISTS, 429 RATE_LIMITED */
export async function signUp(tenant: Tenant, input: Registration, answer: Answer) {
  if (!(await settingsOf(tenant, 'auth-configuration')).allowSignup) throw signupClosed()
  countSignup(tenant, answer.request)
  const also = (tx: Tx, user: UserRow) => welcome(tenant, tx, user)
  const user = await register(tenant, input, ['user'], also, {}, hashNewcomersPassword)
  return started(tenant, user, input.authType, answer)
}

/** What is done with a user who has registered themselves, in that transaction. */
export async function welcome(tenant: Tenant, tx: Tx, user: UserRow) {
  await tellUser(tenant, tx, 'user-registered', user)
  await askToVerify(tenant, tx, user)
}

export const signupClosed = () =>
  new Problem(403, 'SIGNUP_CLOSED', 'Nobody can sign up here by themselves. Ask an administrator for an account.')

/** A new access token and refresh token for a refresh token. @throws 401. */
export async function refresh(tenant: Tenant, token: string | undefined, answer: Answer) {
  if (!token)
    throw new Problem(401, 'UNAUTHENTICATED', 'Send a refresh token, as bearer token or as "refreshToken" in the body.')
  const { session, user, token: refreshToken } = await sessions.exchange(tenant, token)
  return tokens(tenant, session, user, refreshToken, answer)
}

/** A fresh cookie for the session of the old one. */
export async function renew(ctx: Ctx, { request, set }: Answer) {
  const [cookie, { session, user }] = [cookieOf(request, ctx), ctx.actor]
  if (!cookie || !session || ctx.actor.via !== 'cookie')
    throw new Problem(400, 'INVALID_INPUT', 'Only a session that is carried by a cookie can be refreshed here.')
  giveCookie(ctx, await sessions.renewCookie(ctx, session, cookie), { request, set })
  return { payload: identity(await find(ctx, user), ctx.actor.workspace) }
}

/** Ends the session behind the caller's credential; an API token has none, and stays. */
export async function signOut(ctx: Ctx, { request, set }: Answer) {
  if (ctx.actor.session) await sessions.end(ctx, ctx.actor.session)
  if (ctx.actor.via === 'cookie') Object.assign(set.headers as object, { 'set-cookie': clearCookie(request, ctx) })
  return success
}

/** Begins the session of who has shown all that is asked for, and answers it. */
export async function started(
  tenant: Tenant,
  user: UserRow,
  authType: 'oauth' | undefined,
  answer: Answer,
  workspace?: string,
) {
  const { request } = answer
  const device = { userAgent: (request.headers.get('user-agent') ?? '').slice(0, 300), address: addressOf(request) }
  const kind = authType ?? 'cookie'
  const { session, key } = await sessions.begin(tenant, user._id, kind, device, workspace, user.password)
  if (authType) return tokens(tenant, session, user, key, answer)
  giveCookie(tenant, key, answer, await deviceCookie(request, tenant, user._id))
  return { payload: identity(user, await workspaceOf(tenant, session)) }
}

function giveCookie(tenant: Tenant, key: string, { request, set }: Answer, ...others: string[]) {
  forbidKeeping({ request, set })
  Object.assign(set.headers as object, { 'set-cookie': [setCookie(request, tenant, key), ...others] })
}

async function tokens(tenant: Tenant, session: string, user: UserRow, refreshToken: string, answer: Answer) {
  forbidKeeping(answer)
  const workspace = await workspaceOf(tenant, session)
  return { payload: { ...(await issueAccess(tenant, session, user)), refreshToken, ...identity(user, workspace) } }
}

/** What every sign-in tells: who, and in which workspace. */
export const identity = (user: UserRow, workspace: ActiveWorkspace | null) => ({
  user: shown(user, false, workspace),
  workspace,
})

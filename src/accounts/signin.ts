import { type HttpContext, setNoStore } from '../core/etag'
import { badRequest, Problem } from '../core/problem'
import { success } from '../core/shapes'
import { normalizeForLookup } from '../core/text-normalization'
import { getSettings } from '../platform/settings/tenant-settings'
import type { Tx } from '../storage/port'
import { clientIp, clientNetwork, isForwarded, isLocalRequest } from '../tenancy/client-connection'
import { hasSeveralTenants } from '../tenancy/default-tenant'
import type { Tenant } from '../tenancy/tenants'
import { issueAccessToken } from './access-tokens'
import { type ActiveWorkspace, findActiveWorkspace } from './actors'
import { authSettings } from './auth-settings'
import type { Ctx } from './context'
import { readSessionCookie, serializeExpiredSessionCookie, serializeSessionCookie } from './cookies'
import { findKnownDevice, issueDeviceCookie } from './device-cookie'
import { sendVerification } from './mail/verification'
import { getWorkspaceAccess } from './memberships/workspace-access'
import { consumeOneTimeToken, findOneTimeToken, issueOneTimeToken } from './one-time-tokens'
import { hashSignupPassword, needsRehash, verifyPassword } from './passwords'
import { isPrivileged } from './permissions'
import * as sessions from './sessions'
import type { Registration, SignIn } from './shapes'
import { countAttempt, recordSuccess } from './signin-throttle'
import { countSignup } from './signup-throttle'
import type { UserRow } from './tables'
import { countCodeAttempt, invalidCode, isTotpEnabled, prepareCodeUse } from './totp/code-verification'
import { emitUserEvent } from './users/events'
import { findByLogin, getUser, registerUser, rehashPassword, toUser } from './users/users'
import { VERSION_HEADERS } from './version-headers'
import { toWorkOwner } from './work-owner'

/** A user who signs in. `passwordRemoved`: their password was removed, because their address had not been verified. */
export type SignInUser = UserRow & { passwordRemoved?: boolean }

/** Returns what the answer of a sign-in says besides the user, to be kept with a token until the sign-in is complete. */
export const toSignInNotes = ({ passwordRemoved }: SignInUser) => ({
  ...(passwordRemoved && { passwordRemoved: 'yes' }),
})
export const withSignInNotes = (user: UserRow, notes: Record<string, string>): SignInUser => ({
  ...user,
  passwordRemoved: notes.passwordRemoved === 'yes',
})

/**
 * Signs a user in by password, or completes a sign-in by the second factor.
 * @throws 401 INVALID_CREDENTIALS for a wrong username or password alike, SECOND_FACTOR_REQUIRED
 * @throws 404 WORKSPACE_NOT_FOUND when the user cannot access the workspace, 429 RATE_LIMITED
 */
export async function signIn(tenant: Tenant, input: SignIn, answer: HttpContext): ReturnType<typeof startSession> {
  const { username, password, challenge, code, refreshToken } = input
  if (challenge !== undefined) return completeSecondFactor(tenant, challenge, code, answer)
  if (username === undefined || password === undefined) return rejectMissingCredentials(input)
  const user = await findByLogin(tenant, username)
  const account = user?.usernameKey ?? normalizeForLookup(username)
  const device = await findKnownDevice(answer.request, tenant, user?._id ?? '', refreshToken)
  const subjects = { account, address: clientNetwork(answer.request), device, telling: { user: user?._id } }
  const owner = toWorkOwner(tenant, answer.request)
  if (!(await verifyPassword(owner, password, user?.password, () => countAttempt(tenant, subjects)))) {
    throw await wrongCredentials(tenant, answer.request)
  }
  // Both write, and so share a commit.
  const [payload] = await Promise.all([
    continueSignIn(tenant, user!, { ...input, password }, answer),
    recordSuccess(tenant, subjects),
  ])
  return payload
}

/** On the server's own machine it may be unexpected which of several tenants was asked. */
async function wrongCredentials({ tenant }: Tenant, request: Request) {
  const isTold = isLocalRequest(request) && !isForwarded(request) && (await hasSeveralTenants())
  const message = `The username or password is incorrect.${isTold ? ` The tenant "${tenant}" was asked.` : ''}`
  return new Problem(401, 'INVALID_CREDENTIALS', message, isTold ? { details: { tenant } } : {})
}

/** Signs in a user whose password was right. */
async function continueSignIn(
  tenant: Tenant,
  user: UserRow,
  input: SignIn & { password: string },
  answer: HttpContext,
): ReturnType<typeof startSession> {
  const { password, authType, workspace } = input
  const current = needsRehash(user.password) ? await rehashPassword(tenant, user, password) : user
  // Another sign-in has rehashed the password meanwhile, or the password has changed.
  if (!current) return signIn(tenant, input, answer)
  if (workspace)
    await getWorkspaceAccess(tenant.db, { user: current._id, privileged: isPrivileged(current.roles) }, workspace)
  return completeFirstFactor(tenant, current, authType, answer, workspace)
}

const rejectMissingCredentials = (input: SignIn) =>
  badRequest(
    ...(['username', 'password'] as const)
      .filter((name) => input[name] === undefined)
      .map((name) => ({ path: `/${name}`, message: `${name} is required.` })),
  )

/**
 * Starts the session of a user who has passed the first factor, unless they have a second one.
 * @throws 401 SECOND_FACTOR_REQUIRED, INVALID_CREDENTIALS when the password was replaced meanwhile
 */
export async function completeFirstFactor(
  tenant: Tenant,
  user: SignInUser,
  authType: SignIn['authType'],
  answer: HttpContext,
  workspace?: string,
) {
  if (!(await isTotpEnabled(tenant, user._id))) return startSession(tenant, user, authType, answer, workspace)
  const data = { ...(authType && { authType }), ...(workspace && { workspace }), ...toSignInNotes(user) }
  const challenge = await tenant.write(async (tx) => {
    await sessions.assertSamePassword(tx, user._id, user.password)
    return issueOneTimeToken(tx, 'secondFactor', user._id, data)
  })
  throw new Problem(
    401,
    'SECOND_FACTOR_REQUIRED',
    'A second factor is required. Sign in again with this challenge and a code.',
    { details: { challenge }, headers: { 'cache-control': 'no-store' } },
  )
}

/**
 * Completes a sign-in by the second factor.
 * @throws 401 INVALID_CHALLENGE, INVALID_CODE; 429 RATE_LIMITED
 */
async function completeSecondFactor(tenant: Tenant, challenge: string, code = '', answer: HttpContext) {
  const pending = (await findOneTimeToken(tenant.db, 'secondFactor', challenge)) ?? throwChallengeExpired()
  const subjects = await countCodeAttempt(tenant, pending.user, answer.request)
  const consumeCode = await prepareCodeUse(tenant, pending.user, code)
  const user = withSignInNotes(await getUser(tenant, pending.user), pending.data)
  await tenant.write(async (tx) => {
    if (!(await consumeCode(tx))) throw invalidCode(401)
    if (!(await consumeOneTimeToken(tx, 'secondFactor', challenge))) throwChallengeExpired()
  })
  await recordSuccess(tenant, subjects)
  const { authType, workspace } = pending.data
  return startSession(tenant, user, authType as SignIn['authType'], answer, workspace)
}

/** @throws 401 INVALID_CHALLENGE */
export const throwChallengeExpired = (): never => {
  throw new Problem(401, 'INVALID_CHALLENGE', 'The sign-in has expired. Start again.')
}

/**
 * Creates a user and signs them in.
 * @throws 403 SIGNUP_CLOSED, 409 USERNAME_EXISTS, EMAIL_EXISTS, 429 RATE_LIMITED
 */
export async function signUp(tenant: Tenant, input: Registration, answer: HttpContext) {
  if (!(await getSettings(tenant, authSettings)).allowSignup) throw signupClosed()
  await countSignup(tenant, answer.request)
  const afterInsert = (tx: Tx, user: UserRow) => completeSignUp(tenant, tx, user)
  const hash = (password: string) => hashSignupPassword(toWorkOwner(tenant, answer.request), password)
  const user = await registerUser(tenant, input, ['user'], afterInsert, {}, hash)
  return startSession(tenant, user, input.authType, answer)
}

/** Emits the event of a sign-up and queues the verification mail, in the transaction that creates the user. */
export async function completeSignUp(tenant: Tenant, tx: Tx, user: UserRow) {
  await emitUserEvent(tenant, tx, 'user-registered', user)
  await sendVerification(tenant, tx, user)
}

/** Returns the error for a sign-up where the tenant does not allow any. */
export const signupClosed = () =>
  new Problem(403, 'SIGNUP_CLOSED', 'Sign-up is disabled. Ask an administrator for an account.')

/**
 * Returns a new access token and a new refresh token in exchange for a refresh token.
 * @throws 401 UNAUTHENTICATED
 */
export async function refresh(tenant: Tenant, token: string | undefined, answer: HttpContext) {
  if (!token)
    throw new Problem(
      401,
      'UNAUTHENTICATED',
      'A refresh token is required, as the bearer token or as "refreshToken" in the body.',
    )
  const { session, user, token: refreshToken } = await sessions.rotateRefreshToken(tenant, token)
  return issueTokens(tenant, session, user, refreshToken, answer)
}

/**
 * Replaces the cookie of the caller's session by a new one.
 * @throws 400 INVALID_INPUT without a cookie session
 */
export async function renewCookie(ctx: Ctx, { request, set }: HttpContext) {
  const [cookie, { session, user }] = [readSessionCookie(request, ctx), ctx.actor]
  if (!cookie || !session || ctx.actor.via !== 'cookie')
    throw new Problem(400, 'INVALID_INPUT', 'Only a cookie session can be renewed here.')
  setSessionCookies(ctx, await sessions.rotateCookie(ctx, session, cookie), { request, set })
  return { payload: toSessionPayload(await getUser(ctx, user), ctx.actor.workspace) }
}

/** Ends the session of the caller. An API token has no session, and stays valid. */
export async function signOut(ctx: Ctx, { request, set }: HttpContext) {
  if (ctx.actor.session) await sessions.endSession(ctx, ctx.actor.session)
  if (ctx.actor.via === 'cookie')
    Object.assign(set.headers, { 'set-cookie': serializeExpiredSessionCookie(request, ctx) })
  return success
}

/**
 * Starts the session of a user who has passed all factors. Returns its payload, with tokens for `oauth`, else it sets a
 * cookie.
 */
export async function startSession(
  tenant: Tenant,
  user: SignInUser,
  authType: 'oauth' | undefined,
  answer: HttpContext,
  workspace?: string,
) {
  const { request } = answer
  const device = { userAgent: (request.headers.get('user-agent') ?? '').slice(0, 300), address: clientIp(request) }
  const kind = authType ?? 'cookie'
  const { session, key } = await sessions.createSession(tenant, user._id, kind, device, workspace, user.password)
  if (authType) return issueTokens(tenant, session, user, key, answer)
  setSessionCookies(tenant, key, answer, await issueDeviceCookie(request, tenant, user._id))
  return { payload: toSessionPayload(user, await findActiveWorkspace(tenant, session)) }
}

function setSessionCookies(tenant: Tenant, key: string, { request, set }: HttpContext, ...others: string[]) {
  setNoStore({ request, set })
  Object.assign(set.headers, {
    ...VERSION_HEADERS,
    'set-cookie': [serializeSessionCookie(request, tenant, key), ...others],
  })
}

async function issueTokens(
  tenant: Tenant,
  session: string,
  user: SignInUser,
  refreshToken: string,
  answer: HttpContext,
) {
  setNoStore(answer)
  Object.assign(answer.set.headers, VERSION_HEADERS)
  const workspace = await findActiveWorkspace(tenant, session)
  return {
    payload: { ...(await issueAccessToken(tenant, session, user)), refreshToken, ...toSessionPayload(user, workspace) },
  }
}

/** Returns what every sign-in answers: the user and the active workspace. */
export const toSessionPayload = (user: SignInUser, workspace: ActiveWorkspace | null) => ({
  user: toUser(user, false, workspace),
  workspace,
  ...(user.passwordRemoved && { passwordRemoved: true }),
})

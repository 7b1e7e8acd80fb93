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
import type { WithCookies } from './session-headers'
import * as sessions from './sessions'
import type { Registration, SignIn } from './shapes'
import { countAttempt, recordSuccess } from './signin-throttle'
import { countSignup } from './signup-throttle'
import type { UserRow } from './tables'
import { countCodeAttempt, invalidCode, isTotpEnabled, prepareCodeUse } from './totp/code-verification'
import { emitUserEvent } from './users/events'
import { findByLogin, getUser, registerUser, rehashPassword, toUser } from './users/users'
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
export async function signIn(tenant: Tenant, input: SignIn, request: Request): ReturnType<typeof startSession> {
  const { username, password, challenge, code, refreshToken } = input
  if (challenge !== undefined) return completeSecondFactor(tenant, challenge, code, request)
  if (username === undefined || password === undefined) return rejectMissingCredentials(input)
  const user = await findByLogin(tenant, username)
  const account = user?.usernameKey ?? normalizeForLookup(username)
  const device = await findKnownDevice(request, tenant, user?._id ?? '', refreshToken)
  const subjects = { account, address: clientNetwork(request), device, telling: { user: user?._id } }
  const owner = toWorkOwner(tenant, request)
  if (!(await verifyPassword(owner, password, user?.password, () => countAttempt(tenant, subjects)))) {
    throw await wrongCredentials(tenant, request)
  }
  // Both write, and so share a commit.
  const [session] = await Promise.all([
    continueSignIn(tenant, user!, { ...input, password }, request),
    recordSuccess(tenant, subjects),
  ])
  return session
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
  request: Request,
): ReturnType<typeof startSession> {
  const { password, authType, workspace } = input
  const current = needsRehash(user.password) ? await rehashPassword(tenant, user, password) : user
  // Another sign-in has rehashed the password meanwhile, or the password has changed.
  if (!current) return signIn(tenant, input, request)
  if (workspace)
    await getWorkspaceAccess(tenant.db, { user: current._id, privileged: isPrivileged(current.roles) }, workspace)
  return completeFirstFactor(tenant, current, authType, request, workspace)
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
  request: Request,
  workspace?: string,
) {
  if (!(await isTotpEnabled(tenant, user._id))) return startSession(tenant, user, authType, request, workspace)
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
async function completeSecondFactor(tenant: Tenant, challenge: string, code = '', request: Request) {
  const pending = (await findOneTimeToken(tenant.db, 'secondFactor', challenge)) ?? throwChallengeExpired()
  const subjects = await countCodeAttempt(tenant, pending.user, request)
  const consumeCode = await prepareCodeUse(tenant, pending.user, code)
  const user = withSignInNotes(await getUser(tenant, pending.user), pending.data)
  await tenant.write(async (tx) => {
    if (!(await consumeCode(tx))) throw invalidCode(401)
    if (!(await consumeOneTimeToken(tx, 'secondFactor', challenge))) throwChallengeExpired()
  })
  await recordSuccess(tenant, subjects)
  const { authType, workspace } = pending.data
  return startSession(tenant, user, authType as SignIn['authType'], request, workspace)
}

/** @throws 401 INVALID_CHALLENGE */
export const throwChallengeExpired = (): never => {
  throw new Problem(401, 'INVALID_CHALLENGE', 'The sign-in has expired. Start again.')
}

/**
 * Creates a user and signs them in.
 * @throws 403 SIGNUP_CLOSED, 409 USERNAME_EXISTS, EMAIL_EXISTS, 429 RATE_LIMITED
 */
export async function signUp(tenant: Tenant, input: Registration, request: Request) {
  if (!(await getSettings(tenant, authSettings)).allowSignup) throw signupClosed()
  await countSignup(tenant, request)
  const afterInsert = (tx: Tx, user: UserRow) => completeSignUp(tenant, tx, user)
  const hash = (password: string) => hashSignupPassword(toWorkOwner(tenant, request), password)
  const user = await registerUser(tenant, input, ['user'], afterInsert, {}, hash)
  return startSession(tenant, user, input.authType, request)
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
export async function refresh(tenant: Tenant, token: string | undefined) {
  if (!token)
    throw new Problem(
      401,
      'UNAUTHENTICATED',
      'A refresh token is required, as the bearer token or as "refreshToken" in the body.',
    )
  const { session, user, token: refreshToken } = await sessions.rotateRefreshToken(tenant, token)
  return issueTokens(tenant, session, user, refreshToken)
}

/**
 * Replaces the cookie of the caller's session by a new one.
 * @throws 400 INVALID_INPUT without a cookie session
 */
export async function renewCookie(ctx: Ctx, request: Request) {
  const [cookie, { session, user }] = [readSessionCookie(request, ctx), ctx.actor]
  if (!cookie || !session || ctx.actor.via !== 'cookie')
    throw new Problem(400, 'INVALID_INPUT', 'Only a cookie session can be renewed here.')
  const cookies = [serializeSessionCookie(request, ctx, await sessions.rotateCookie(ctx, session, cookie))]
  return { value: toSessionPayload(await getUser(ctx, user), ctx.actor.workspace), cookies }
}

/** Ends the session of the caller. An API token has no session, and stays valid. */
export async function signOut(ctx: Ctx, request: Request): Promise<WithCookies<typeof success>> {
  if (ctx.actor.session) await sessions.endSession(ctx, ctx.actor.session)
  return { value: success, cookies: ctx.actor.via === 'cookie' ? [serializeExpiredSessionCookie(request, ctx)] : [] }
}

/**
 * Starts the session of a user who has passed all factors. Returns its payload, with tokens for `oauth`, else with
 * cookies.
 */
export async function startSession(
  tenant: Tenant,
  user: SignInUser,
  authType: 'oauth' | undefined,
  request: Request,
  workspace?: string,
) {
  const device = { userAgent: (request.headers.get('user-agent') ?? '').slice(0, 300), address: clientIp(request) }
  const kind = authType ?? 'cookie'
  const { session, key } = await sessions.createSession(tenant, user._id, kind, device, workspace, user.password)
  if (authType) return issueTokens(tenant, session, user, key)
  const cookies = [serializeSessionCookie(request, tenant, key), await issueDeviceCookie(request, tenant, user._id)]
  return { value: toSessionPayload(user, await findActiveWorkspace(tenant, session)), cookies }
}

async function issueTokens(tenant: Tenant, session: string, user: SignInUser, refreshToken: string) {
  const workspace = await findActiveWorkspace(tenant, session)
  const tokens = { ...(await issueAccessToken(tenant, session, user)), refreshToken }
  return { value: { ...tokens, ...toSessionPayload(user, workspace) }, cookies: [] }
}

/** Returns what every sign-in answers: the user and the active workspace. */
export const toSessionPayload = (user: SignInUser, workspace: ActiveWorkspace | null) => ({
  user: toUser(user, false, workspace),
  workspace,
  ...(user.passwordRemoved && { passwordRemoved: true }),
})

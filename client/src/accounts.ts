import { AtollError } from './errors'
import type { ActiveWorkspace, AtollUser, SessionListener, SignedIn } from './session'
import { type Init, type Transport, toSegment } from './transport'

/** The profile of the signed-in user. */
export type AtollProfile = AtollUser & {
  workspace: ActiveWorkspace | null
  isPrivileged: boolean
  emailVerified: boolean
  pendingEmail: string | null
}
export type NewAccount = {
  username: string
  password: string
  email?: string
  firstName?: string
  lastName?: string
  fullName?: string
  birthDate?: string
  phone?: string
}
/** What proves who somebody is, where the sign-in is older than ten minutes. */
export type Proof = { currentPassword?: string; code?: string }
/** What proves that somebody read a mail: the token of its link, or its code. */
export type MailProof = { token: string } | { email: string; code: string }
export type ProfileChange = Partial<Omit<NewAccount, 'email'>> &
  Proof & {
    email?: string | null
    name?: string
    profileImage?: string | null
    metadata?: Record<string, unknown>
    /** With a new password, the API tokens end, too. */
    endTokens?: boolean
  }
export type AtollSession = {
  _id: string
  kind: string
  userAgent: string
  address: string
  created: string
  used: string
  expires: string
  current: boolean
}
/** `secondFactor` returns a code when the account has a second factor. */
export type SignInInit = Init & { secondFactor?: () => string | Promise<string> }

/** Starts a session, and asks for the code of a second factor where one is needed. */
export async function startSession({ startSession: start }: Transport, path: string, body: object, init: SignInInit) {
  const { secondFactor, ...rest } = init
  try {
    return await start(path, body, rest)
  } catch (error) {
    if (!(error instanceof AtollError) || error.code !== 'SECOND_FACTOR_REQUIRED' || !secondFactor) throw error
    const { challenge } = error.details as { challenge: string }
    return start('/api/signin', { challenge, code: await secondFactor() }, rest)
  }
}

/** Signing in and out, and the user's account. */
export function createAccount(transport: Transport) {
  const { get, post, remove, send, session, mode } = transport
  return {
    /**
     * Signs in by username or e-mail and password. Without `secondFactor`, an account that has one is refused by
     * `SECOND_FACTOR_REQUIRED`, whose `details.challenge` goes back with a code.
     * @example
     * const { user } = await client.signIn({ username: 'grace', password }, { secondFactor: () => askForCode() })
     * console.log(user.fullName)
     */
    signIn: (
      credentials: { username: string; password: string; workspace?: string } | { challenge: string; code: string },
      init: SignInInit = {},
    ): Promise<SignedIn> => startSession(transport, '/api/signin', credentials, init),

    /**
     * Creates an account and signs in.
     * @example
     * const { user } = await client.signUp({ username: 'ada', password, fullName: 'Ada Lovelace' })
     */
    signUp: (account: NewAccount, init: Init = {}): Promise<SignedIn> =>
      startSession(transport, '/api/signup', account, init),

    /**
     * Ends the session, immediately here, and on the server.
     * @example
     * await client.signOut()
     */
    signOut: async (init: Init = {}): Promise<void> => {
      try {
        await send('POST', '/api/logout', init)
      } catch (error) {
        // The session has ended already.
        if (!(error instanceof AtollError) || error.status !== 401) throw error
      } finally {
        await session.end()
      }
    },

    /**
     * Renews the session now. This is never necessary, because requests renew it. Returns undefined when nobody is signed in.
     * @example
     * const renewed = await client.refresh()
     * console.log(renewed?.user.roles)
     */
    refresh: async (init: Init = {}): Promise<SignedIn | undefined> =>
      mode === 'cookie'
        ? session.accept((await post<{ payload: SignedIn }>('/api/cookie/refresh', undefined, init)).payload)
        : session.renewNow(),

    /**
     * The profile of the signed-in user, with the active workspace.
     * @example
     * const me = await client.me()
     * console.log(me.username, me.workspace?.name)
     */
    me: (init: Init = {}) => get<AtollProfile>('/api/me', {}, init),

    /**
     * Changes the profile of the signed-in user. A new password ends all other sessions.
     * @example
     * await client.updateMe({ firstName: 'Grace', metadata: { theme: 'dark' } })
     */
    updateMe: (change: ProfileChange, init: Init = {}) => post<AtollProfile>('/api/me', change, init),

    /**
     * Calls the listener when somebody signs in or out, in any tab, and when a session ends. Returns how to stop.
     * @example
     * const stop = client.onSession((session) => console.log(session?.user.username ?? 'signed out'))
     * stop()
     */
    onSession: (listener: SessionListener) => session.listen(listener),

    /** The user's sessions. */
    sessions: {
      /**
       * Where the account is signed in.
       * @example
       * const others = (await client.sessions.list()).filter((session) => !session.current)
       */
      list: (init: Init = {}) => get<AtollSession[]>('/api/me/sessions', {}, init),
      /**
       * Ends a session.
       * @example
       * for (const session of await client.sessions.list()) if (!session.current) await client.sessions.remove(session._id)
       */
      remove: (id: string, init: Init = {}) => remove(`/api/me/sessions/${toSegment(id)}`, init),
    },

    /** Forgotten passwords. */
    password: {
      /**
       * Sends a mail with a code and a link, if the address belongs to an account.
       * @example
       * await client.password.forgot('grace@example.com')
       */
      forgot: (email: string, init: Init = {}) => post<{ success: true }>('/api/password/forgot', { email }, init),
      /**
       * Sets a new password with the code of the mail, or with the token of its link. All sessions end.
       * @example
       * const email = 'grace@example.com'
       * await client.password.reset({ email, code: await askForCode(), password: 'a new and better one' })
       */
      reset: (change: MailProof & { password: string }, init: Init = {}) =>
        post<{ success: true }>('/api/password/reset', change, init),
    },
  }
}

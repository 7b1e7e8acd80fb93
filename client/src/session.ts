import { type Answer, toAtollError } from './errors'
import { findStorage, platform, type TokenStorage } from './platform'

export type AtollUser = {
  _id: string
  username: string
  email: string
  name: string
  firstName: string
  lastName: string
  fullName: string
  profileImage: string | null
  birthDate: string | null
  phone: string | null
  roles: string[]
  metadata: Record<string, unknown>
  created: string
}
export type ActiveWorkspace = { _id: string; name: string; roles: string[]; labels: string[] }

/** Who is signed in, and the workspace that they work in. */
export type SignedIn = {
  user: AtollUser
  workspace: ActiveWorkspace | null
  /** Whether this sign-in removed the password, because the address had not been confirmed. Offer to choose a new one. */
  passwordRemoved?: boolean
}
type Tokens = { token: string; refreshToken: string; expiresIn: number }
export type SessionPayload = SignedIn & Partial<Tokens>
type StoredSession = SignedIn & { token: string; refreshToken: string; expires: number }
export type SessionListener = (session: SignedIn | null) => void

const MAX_LOCK_WAIT_MS = 5_000 // ms; another tab may hold the lock and sleep
const RENEWED_BEFORE_MS = 30_000 // ms before the access token expires

export type SessionOptions = {
  /** The name of the session in the storage. */
  key: string
  isKept: boolean
  storage?: TokenStorage
  /** Exchanges a refresh token. */
  refresh(token: string): Promise<Answer>
}

/**
 * The session of the tokens. It is read from the storage each time, so that all tabs have the same one, and a refresh
 * token is used by one of them only.
 */
export function createSession({ key, isKept, storage = findStorage(), refresh }: SessionOptions) {
  const listeners = new Set<SessionListener>()
  let isKnownToBeOut = false
  const notify = (session: SignedIn | null) => {
    if (!session && isKnownToBeOut) return
    isKnownToBeOut = !session
    for (const listener of listeners) listener(session && { user: session.user, workspace: session.workspace })
  }
  // The event comes from other tabs only. They tell it when tokens are renewed, too.
  if (isKept)
    platform.addEventListener?.('storage', ({ key: changed, oldValue, newValue }) => {
      const [before, after] = [parseSession(oldValue), parseSession(newValue)]
      if (changed === key && before?.user._id !== after?.user._id) notify(after ?? null)
    })

  const read = async () => (isKept ? parseSession(await storage.getItem(key)) : undefined)

  async function write({ user, workspace, token, refreshToken, expiresIn }: SessionPayload) {
    if (!isKept || !token || !refreshToken || !expiresIn) return
    const session: StoredSession = { user, workspace, token, refreshToken, expires: Date.now() + expiresIn * 1000 }
    await storage.setItem(key, JSON.stringify(session))
    return session
  }

  /** Keeps what a sign-in answered. */
  async function accept(payload: SessionPayload): Promise<SignedIn> {
    const { user, workspace, passwordRemoved } = payload
    await write(payload)
    notify({ user, workspace })
    return { user, workspace, ...(passwordRemoved && { passwordRemoved }) }
  }

  async function end() {
    if (isKept) await storage.removeItem(key)
    notify(null)
  }

  /** Runs the work in one tab at a time, or after a while anyway: the server gives late tabs the same successor. */
  async function withLock<Result>(work: () => Promise<Result>): Promise<Result> {
    const { locks } = platform.navigator ?? {}
    if (!locks) return work()
    const waiting = new AbortController()
    const timer = setTimeout(() => waiting.abort(), MAX_LOCK_WAIT_MS)
    let hasBegun = false
    const begin = () => {
      hasBegun = true
      clearTimeout(timer)
      return work()
    }
    try {
      return await locks.request(key, { signal: waiting.signal }, begin)
    } catch (error) {
      if (hasBegun) throw error
      return work()
    }
  }

  /** Another tab may have exchanged the token, or signed out, while this one waited. */
  async function exchange(usedToken: string) {
    const session = await read()
    if (!session || session.token !== usedToken) return session
    const answer = await refresh(session.refreshToken)
    if (!answer.ok && answer.status !== 401) throw await toAtollError(answer)
    // Nobody may be signed in any more.
    if ((await read())?.token !== usedToken) return read()
    if (!answer.ok) return void (await end())
    return write(JSON.parse(await answer.text()).payload)
  }

  let renewal: Promise<StoredSession | undefined> | undefined
  function renew(usedToken: string) {
    renewal ??= withLock(() => exchange(usedToken)).finally(() => {
      renewal = undefined
    })
    return renewal
  }

  return {
    accept,
    end,
    /** Returns a valid access token, or undefined when nobody is signed in. */
    async getToken() {
      const session = await read()
      if (!session || session.expires - RENEWED_BEFORE_MS > Date.now()) return session?.token
      return (await renew(session.token))?.token
    },
    /** Returns another token than one that the server refused, or undefined. */
    async replace(usedToken: string | undefined) {
      const session = usedToken ? await renew(usedToken) : undefined
      return session && session.token !== usedToken ? session.token : undefined
    },
    async renewNow(): Promise<SignedIn | undefined> {
      const session = await read()
      const renewed = session && (await renew(session.token))
      return renewed && { user: renewed.user, workspace: renewed.workspace }
    },
    listen(listener: SessionListener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

function parseSession(text: string | null): StoredSession | undefined {
  try {
    return text ? JSON.parse(text) : undefined
  } catch {
    return undefined // something else has written there
  }
}

import type { MailProof, Proof } from './accounts'
import { type SignInInit, startSession } from './accounts'
import { platform } from './platform'
import { type Init, type Transport, toSearch, toSegment } from './transport'

export type SignInMethods = { email: boolean; providers: string[] }
export type AtollIdentity = {
  _id: string
  provider: string
  email: string | null
  created: string
  lastUsedAt: string | null
}

/** Sign-ins by mail, by a second factor and by providers. */
export function createSignInMethods(transport: Transport) {
  const { get, post, remove, request, origin } = transport
  const toUrl = (provider: string, query: { returnUrl?: string; state?: string } = {}) =>
    `${origin}/api/auth/${toSegment(provider)}${toSearch(query)}`
  return {
    /**
     * The ways to sign in besides passwords and passkeys.
     * @example
     * const { email, providers } = await client.signInMethods()
     */
    signInMethods: (init: Init = {}) => get<SignInMethods>('/api/signin/methods', {}, init),

    /** E-mail addresses, and sign-ins by a code or a link in a mail. */
    email: {
      /**
       * Sends a mail with a code and a link. The returned `request` goes back with the code.
       * @example
       * const { request } = await client.email.requestSignIn('grace@example.com')
       * await client.email.signInByCode({ request, code: await askForCode() })
       */
      requestSignIn: (email: string, init: Init = {}) =>
        request<{ request: string }>('POST', '/api/signin/email', { ...init, json: { email }, isOpen: true }),
      /**
       * Signs in by the code of a mail, on the device that requested it.
       * @example
       * const { request } = await client.email.requestSignIn('grace@example.com')
       * const { user } = await client.email.signInByCode({ request, code: await askForCode() })
       */
      signInByCode: (code: { request: string; code: string }, init: SignInInit = {}) =>
        startSession(transport, '/api/signin/email/code', code, init),
      /**
       * Signs in by the token of a link in a mail, on any device.
       * @example
       * const { user } = await client.email.signInByLink(token)
       */
      signInByLink: (token: string, init: SignInInit = {}) =>
        startSession(transport, '/api/signin/email/link', { token }, init),
      /**
       * Confirms an address with the code of a mail, or with the token of its link.
       * @example
       * const { email } = await client.me()
       * if (email) await client.email.verify({ email, code: await askForCode() })
       */
      verify: (proof: string | MailProof, init: Init = {}) =>
        request<{ success: true }>('POST', '/api/email/verify', {
          ...{ ...init, json: typeof proof === 'string' ? { token: proof } : proof, isOpen: true },
        }),
      /**
       * Sends the mail that confirms the user's address again.
       * @example
       * await client.email.sendVerification()
       */
      sendVerification: (init: Init = {}) => post<{ success: true }>('/api/email/verification', undefined, init),
    },

    /** The user's second factor: codes of an authenticator app. */
    totp: {
      /**
       * Whether there is one, and how many recovery codes are left.
       * @example
       * const { enabled, recoveryCodes } = await client.totp.status()
       */
      status: (init: Init = {}) => get<{ enabled: boolean; recoveryCodes: number }>('/api/me/totp', {}, init),
      /**
       * Starts to add one: the app takes the `secret`, or the `uri` as a QR code.
       * @example
       * const { uri, secret } = await client.totp.start({ currentPassword: password })
       */
      start: (proof?: Proof, init: Init = {}) => post<{ secret: string; uri: string }>('/api/me/totp', proof, init),
      /**
       * Completes it with a first code. The recovery codes are shown only here.
       * @example
       * const { secret } = await client.totp.start({ currentPassword: password })
       * const { recoveryCodes } = await client.totp.confirm(await codeFromApp(secret))
       */
      confirm: (code: string, init: Init = {}) =>
        post<{ recoveryCodes: string[] }>('/api/me/totp/confirm', { code }, init),
      /**
       * Removes it with a code of the app, or a recovery code.
       * @example
       * const { secret } = await client.totp.start({ currentPassword: password })
       * const { recoveryCodes } = await client.totp.confirm(await codeFromApp(secret))
       * await client.totp.remove(recoveryCodes[0]!)
       */
      remove: (code: string, init: Init = {}) =>
        request<{ success: true }>('DELETE', '/api/me/totp', { ...init, json: { code } }),
    },

    /** Sign-ins by other services. */
    providers: {
      /**
       * The names of those that are set up, such as `google`.
       * @example
       * const names = await client.providers.list()
       */
      list: (init: Init = {}) => get<string[]>('/api/auth/providers', {}, init),
      /**
       * The address of a sign-in. The browser comes back to `returnUrl` with `?rt=`, which `complete` takes.
       * @example
       * const address = client.providers.url('google', { returnUrl: 'https://app.example.com/signed-in' })
       */
      url: toUrl,
      /**
       * Leads the browser to a provider.
       * @example
       * const [provider] = await client.providers.list()
       * if (provider) client.providers.open(provider, { returnUrl: 'https://app.example.com/signed-in' })
       */
      open: (...to: Parameters<typeof toUrl>) => platform.location?.assign(toUrl(...to)),
      /**
       * Completes a sign-in on the page of `returnUrl`, with the `rt` of its address.
       * @example
       * const rt = new URL(address).searchParams.get('rt')
       * if (rt) await client.providers.complete(rt)
       */
      complete: (rt: string, init: SignInInit = {}) => startSession(transport, '/api/auth/callback', { rt }, init),
      /**
       * The accounts of other services with which the user can sign in.
       * @example
       * const linked = await client.providers.linked()
       */
      linked: (init: Init = {}) => get<AtollIdentity[]>('/api/me/identities', {}, init),
      /**
       * Starts to link another one: the browser goes to the returned `url`. It has to keep a cookie until it comes back, so the
       * page is on the host of the server, or the mode is `cookie`.
       * @example
       * const [provider] = await client.providers.list()
       * if (provider) console.log((await client.providers.link({ provider })).url)
       */
      link: (link: { provider: string; returnUrl?: string; state?: string } & Proof, init: Init = {}) =>
        post<{ url: string }>('/api/me/identities', link, init),
      /**
       * Removes one.
       * @example
       * for (const identity of await client.providers.linked()) await client.providers.unlink(identity._id)
       */
      unlink: (id: string, init: Init = {}) => remove(`/api/me/identities/${toSegment(id)}`, init),
    },
  }
}

import { createHash } from 'node:crypto'
import { decodeProtectedHeader, exportJWK, exportPKCS8, generateKeyPair, jwtVerify, SignJWT } from 'jose'

type OauthUser = Record<string, unknown> & { sub: string }
type Grant = { person: OauthUser; challenge: string; nonce: string | null; redirectUri: string; clientId: string }

/** The faults of the provider. */
export type ProviderFault = {
  /** Changes the claims of an id_token before it is signed. */
  claims?: (claims: Record<string, unknown>) => Record<string, unknown>
  key?: 'other'
  discovery?: Record<string, unknown>
  answer?: (path: string) => Response | undefined | Promise<Response | undefined>
}

const AUTHORIZATION_PATHS =
  /^\/(authorize|auth\/authorize|o\/oauth2\/v2\/auth|(login\/|i\/)?oauth2?\/authorize|common\/oauth2\/v2.0\/authorize|oauth\/v2\/authorization|v[\d.]+\/dialog\/oauth)$/
const TOKEN_PATHS =
  /^\/(token|(auth|oauth|api\/oauth2|2\/oauth2|common\/oauth2\/v2.0)\/token|login\/oauth\/access_token|oauth\/v2\/accessToken|v[\d.]+\/oauth\/access_token)$/

const OAUTH_CLIENT = { id: 'the client', secret: 's&cret: é' }
/** What Apple knows of a client, which signs a token with its own key instead of sending a secret. */
const APPLE_CLIENT = { teamId: 'TEAM', keyId: 'KEY' }
const appleKeys = await generateKeyPair('ES256', { extractable: true })
const signingKeys = await generateKeyPair('RS256', { extractable: true })
const otherKeys = await generateKeyPair('RS256')

/**
 * Starts a real provider of OAuth 2 and OpenID Connect on a free port. Its codes are valid once, for the client that
 * requested them, at the redirect URI of the request, and with the verifier of the challenge. It also answers at the
 * paths of the known providers.
 */
export async function startOauthProvider(person: OauthUser) {
  const grants = new Map<string, Grant>()
  const tokens = new Map<string, OauthUser>()
  const asked: string[] = []
  const own = { person, flaw: {} as ProviderFault }
  const key = { ...(await exportJWK(signingKeys.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request): Promise<Response> {
      const url = new URL(request.url)
      const path = url.pathname.replace(/^\/inner/, '')
      asked.push(path)
      const wrong = await own.flaw.answer?.(path)
      if (wrong) return wrong
      if (path === '/.well-known/openid-configuration')
        return Response.json({ ...configuration, ...own.flaw.discovery })
      if (/^\/(jwks|auth\/keys|oauth2\/v3\/certs|oauth\/discovery\/keys)$/.test(path))
        return Response.json({ keys: [key] })
      if (AUTHORIZATION_PATHS.test(path)) return authorize(url.searchParams)
      if (TOKEN_PATHS.test(path)) return token(request)
      return resource(path, request)
    },
  })
  const issuer = `http://127.0.0.1:${server.port}`
  const configuration = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    userinfo_endpoint: `${issuer}/userinfo`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  }

  function authorize(query: URLSearchParams) {
    const redirectUri = query.get('redirect_uri')!
    const code = crypto.randomUUID()
    const [challenge, clientId] = [query.get('code_challenge')!, query.get('client_id')!]
    grants.set(code, { person: own.person, challenge, nonce: query.get('nonce'), redirectUri, clientId })
    if (query.get('response_mode') === 'form_post')
      return new Response(`${new URLSearchParams({ code, state: query.get('state')! })}`, {
        headers: { 'x-form-action': redirectUri },
      })
    const state = encodeURIComponent(query.get('state')!)
    return Response.redirect(`${redirectUri}?code=${code}&state=${state}`, 302)
  }

  async function token(request: Request) {
    const form = new URLSearchParams(await request.text())
    const grant = grants.get(form.get('code') ?? '')
    grants.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const [id, secret] = clientCredentials(request, form)
    const fits =
      grant?.challenge === challenge && grant.redirectUri === form.get('redirect_uri') && grant.clientId === id
    const isApple = new URL(request.url).pathname === '/auth/token'
    const isSecretValid = isApple ? await isAppleSecret(secret!) : secret === OAUTH_CLIENT.secret
    if (!fits || id !== OAUTH_CLIENT.id || !isSecretValid)
      return Response.json({ error: fits ? 'invalid_client' : 'invalid_grant' }, { status: 400 })
    const access = crypto.randomUUID()
    tokens.set(access, grant.person)
    return Response.json({ access_token: access, token_type: 'Bearer', id_token: await idToken(grant) })
  }

  const isAppleSecret = (token: string) =>
    jwtVerify(token, appleKeys.publicKey, {
      ...{ algorithms: ['ES256'], issuer: APPLE_CLIENT.teamId, subject: OAUTH_CLIENT.id, audience: issuer },
      requiredClaims: ['iat', 'exp'],
    }).then(
      () => decodeProtectedHeader(token).kid === APPLE_CLIENT.keyId,
      () => false,
    )

  function idToken({ person, nonce, clientId }: Grant) {
    const time = Math.floor(Date.now() / 1000)
    const standard = { ...person, ...(nonce && { nonce }), iss: issuer, aud: clientId, iat: time, exp: time + 300 }
    const claims = own.flaw.claims?.(standard) ?? standard
    const signer = own.flaw.key === 'other' ? otherKeys : signingKeys
    return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'one' }).sign(signer.privateKey)
  }

  function resource(path: string, request: Request) {
    const person = tokens.get(request.headers.get('authorization')?.replace('Bearer ', '') ?? '')
    if (!person) return new Response(null, { status: 401 })
    const { sub: id, email, email_verified: verified, preferred_username: login, name } = person
    if (path === '/user')
      return Response.json({ id: Number(id), login, name, email: null, avatar_url: 'https://x.test/a.png' })
    if (path === '/user/emails')
      return Response.json([
        { email: 'second@x.test', primary: false, verified: true },
        { email, primary: true, verified },
      ])
    if (path === '/api/users/@me')
      return Response.json({ id, username: login, global_name: name, email, verified, avatar: 'a' })
    if (path === '/2/users/me')
      return Response.json({ data: { id, username: login, name, confirmed_email: verified ? email : null } })
    if (/^\/v[\d.]+\/me$/.test(path)) return Response.json({ id, name, email })
    if (/userinfo$/.test(path)) return Response.json(person)
    return new Response(null, { status: 404 })
  }

  const apple = { ...APPLE_CLIENT, clientSecret: await exportPKCS8(appleKeys.privateKey) }
  return { issuer, own, asked, client: OAUTH_CLIENT, apple, stop: () => server.stop(true) }
}

function clientCredentials(request: Request, form: URLSearchParams) {
  const basic = request.headers.get('authorization')?.replace('Basic ', '')
  if (!basic) return [form.get('client_id'), form.get('client_secret')]
  return Buffer.from(basic, 'base64')
    .toString()
    .split(':')
    .map((part) => decodeURIComponent(part.replaceAll('+', ' ')))
}

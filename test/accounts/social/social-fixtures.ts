import type { startOauthProvider } from '../../fakes/oauth-provider'
import { callApi, createTestTenant } from '../../test-tenant'

type Provider = Awaited<ReturnType<typeof startOauthProvider>>

/** Creates a tenant whose users can sign in by the provider of the test. */
export async function createSocialFixture(provider: Provider, more: Record<string, unknown> = {}) {
  const home = await createTestTenant()
  const { id: clientId, secret: clientSecret } = provider.client
  const credentials = { clientId, clientSecret, baseUrl: provider.issuer }
  const providers = {
    corp: { clientId, clientSecret, kind: 'oidc', issuer: provider.issuer },
    ...{ google: credentials, github: credentials, linkedin: credentials, facebook: credentials },
    apple: { ...credentials, ...provider.apple },
    ...{ discord: credentials, gitlab: credentials, microsoft: credentials, x: credentials },
  }
  const metadata = { providers, allowedReturnHosts: ['app.example.com', 'localhost:5173'], ...more }
  const set = await home.as('admin').put('/configurations/auth-configuration', { metadata })
  if (set.status !== 200) throw new Error(JSON.stringify(set.body))
  return { ...home, browser: () => createBrowser(home.origin) }
}

/** Submits a form from another site, without cookies as a browser would, and returns where the answer leads. */
async function submitForm(action: string, raw: string) {
  const headers = { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://appleid.apple.com' }
  const answer = await callApi('POST', action, { headers, raw })
  if (answer.status !== 303) throw new Error(`The form got ${answer.status}.`)
  return `${new URL(answer.headers.get('location')!, action)}`
}

/** Returns a minimal browser that keeps cookies and follows the redirects of a sign-in. */
export function createBrowser(origin: string) {
  const jar = new Map<string, string>()
  const get = async (url: string, method = 'GET', body?: unknown) => {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await callApi(method, url, { headers: cookie ? { cookie } : {}, body })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line)!
      if (/Max-Age=0/.test(line)) jar.delete(name)
      else jar.set(name, value)
    }
    return { ...answer, location: answer.headers.get('location') ?? '' }
  }
  /** Visits the provider and returns the URL to which it redirects the browser. */
  const begin = async (name: string, query = '') => {
    const sent = await get(`${origin}/api/auth/${name}${query}`)
    if (sent.status !== 302) return { sent, back: '' }
    const there = await fetch(sent.location, { redirect: 'manual' })
    const action = there.headers.get('x-form-action')
    return { sent, back: (action ? await submitForm(action, await there.text()) : there.headers.get('location')) ?? '' }
  }
  return {
    jar,
    get: (path: string) => get(`${origin}/api${path}`),
    post: (path: string, body?: unknown) => get(`${origin}/api${path}`, 'POST', body),
    visit: get,
    begin,
    /** Completes the sign-in and returns the response of the callback. */
    signIn: async (name: string, query = '') => {
      const { sent, back } = await begin(name, query)
      return back ? get(back) : sent
    },
  }
}

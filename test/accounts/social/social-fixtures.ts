import type { startOauthProvider } from '../../fakes/oauth-provider'
import { callApi, createTestTenant } from '../../test-tenant'

type Provider = Awaited<ReturnType<typeof startOauthProvider>>

/** A tenant whose users may sign in by a provider that is there for the test. */
export async function createSocialFixture(at: Provider, more: Record<string, unknown> = {}) {
  const home = await createTestTenant()
  const { id: clientId, secret: clientSecret } = at.client
  const credentials = { clientId, clientSecret, baseUrl: at.issuer }
  const providers = {
    corp: { clientId, clientSecret, kind: 'oidc', issuer: at.issuer },
    ...{ google: credentials, github: credentials, linkedin: credentials, facebook: credentials },
  }
  const metadata = { providers, allowedReturnHosts: ['app.example.com', 'localhost:5173'], ...more }
  const set = await home.as('admin').put('/configurations/auth-configuration', { metadata })
  if (set.status !== 200) throw new Error(JSON.stringify(set.body))
  return { ...home, browser: () => createBrowser(home.origin) }
}

/** A browser: it keeps cookies, and goes where it is sent to, from here to the provider and back. */
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
  /** To the provider; answers where that sends the browser back to. */
  const begin = async (name: string, query = '') => {
    const sent = await get(`${origin}/api/auth/${name}${query}`)
    if (sent.status !== 302) return { sent, back: '' }
    const there = await fetch(sent.location, { redirect: 'manual' })
    return { sent, back: there.headers.get('location') ?? '' }
  }
  return {
    jar,
    get: (path: string) => get(`${origin}/api${path}`),
    post: (path: string, body?: unknown) => get(`${origin}/api${path}`, 'POST', body),
    visit: get,
    begin,
    /** The whole way, to the answer of the callback. */
    signIn: async (name: string, query = '') => {
      const { sent, back } = await begin(name, query)
      return back ? get(back) : sent
    },
  }
}

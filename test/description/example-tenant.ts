import { createSession } from '../../src/accounts/sessions'
import { config } from '../../src/config'
import { requests } from '../accounts/access/route-requests'
import {
  createTenantFixture,
  password,
  type Requester,
  type RouteRequest,
  type TenantFixture,
} from '../accounts/access/tenant-fixture'
import { createMailReader } from '../accounts/mail/mail-fixtures'
import { startOpenai } from '../fakes/openai-server'
import { waitUntil } from '../wait-until'

type Build = (at: TenantFixture, openaiUrl: string) => Promise<RouteRequest>

const EMAIL = 'ada@example.com'

/** Requests a mail that signs ada in; returns what completes the sign-in. */
async function requestSignInMail(at: TenantFixture) {
  const { outbox, codeOf, tokenOf } = createMailReader(at)
  const countMails = async () =>
    (await outbox()).filter(({ template }: { template: string }) => template === 'emailSignIn').length
  const before = await countMails()
  const { request } = (await at.anonymous.post('/signin/email', { email: EMAIL })).body
  // The runner of the server may be sending it.
  await waitUntil(countMails, (count) => count > before)
  return { request, code: await codeOf('emailSignIn'), token: await tokenOf('emailSignIn') }
}

/** Requests that the fixture of all routes lacks, because it asks these routes with something invalid. */
const OWN_REQUESTS: Record<string, Build> = {
  'POST /api/signin/email/code': async (at) => ({ body: await requestSignInMail(at) }),
  'POST /api/signin/email/link': async (at) => ({ body: await requestSignInMail(at) }),
  'POST /api/email/verify': async (at) => {
    const email = at.email(at.name())
    await at.anonymous.post('/signup', { username: at.name(), email, password })
    return { body: { email, code: await createMailReader(at).codeOf('verification') } }
  },
  'POST /api/password/reset': async (at) => {
    await at.anonymous.post('/password/forgot', { email: EMAIL })
    return { body: { code: await createMailReader(at).codeOf('passwordReset') } }
  },
  'POST /api/plugins/:id/reload': async (at, openaiUrl) => {
    // What is there is an object, as a manifest has to be.
    const body = { name: at.name(), manifestUrl: `${openaiUrl}/models` }
    return { path: { id: (await at.as('admin').post('/plugins', body)).body._id } }
  },
  'POST /api/integration-sources/status': async (_, apiUrl) => ({ body: { metadata: { apiUrl } } }),
}

/** Creates the tenant of the examples: a fixture with what they name, and a server of models. */
export async function createExampleTenant() {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
  const openai = await startOpenai()
  const at = await createTenantFixture()
  const admin = at.as('admin')
  const create = async (path: string, body: object) => {
    const { status, body: created } = await admin.post(path, body)
    if (status >= 300) throw new Error(JSON.stringify(created))
    return created._id as string
  }
  const { _id: ada } = (await admin.get('/users?username=ada&exact=true')).body[0]
  await admin.put(`/users/${ada}`, { email: EMAIL })
  await admin.put('/configurations/app-configuration', { websiteUrls: ['https://app.example.com'] })
  const metadata = { apiUrl: openai.url, embeddingModel: 'embedding-1' }
  const authentication = { token: 'sk-secret' }
  const sourceId = await create('/integration-sources', { name: 'models', kind: 'openai', metadata, authentication })
  await create('/ai/agents', { name: 'Librarian', sourceId, model: 'model-1' })

  /** Returns an admin with a new session. */
  const signIn = async (): Promise<Requester> => {
    const device = { userAgent: 'a browser', address: '192.0.2.1' }
    const { key } = await createSession(at.tenant, at.users.admin, 'cookie', device)
    return { user: at.users.admin, email: at.email('admin'), headers: { cookie: `atoll_${at.id}=${key}` } }
  }
  const ownRequest = async (name: string, by: Requester): Promise<RouteRequest> =>
    (await OWN_REQUESTS[name]?.(at, openai.url)) ?? (await requests[name]?.(at, by)) ?? {}
  const close = () => {
    config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
    return openai.stop()
  }
  return { ...at, signIn, ownRequest, close }
}

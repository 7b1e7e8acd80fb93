import { expect } from 'bun:test'
import { runDueJobs } from '../../../src/jobs/runner'
import { createTestTenant, type TestResponse } from '../../test-tenant'

export const password = 'correct horse'

type TestTenant = Awaited<ReturnType<typeof createTestTenant>>

/** Creates a tenant and a signed-up user, with functions that read the mail of the tenant. */
export async function createMailFixture(email = 'ada@lovelace.test') {
  const home = await createTestTenant()
  const signedUp = await home.anonymous.post('/signup', { username: 'ada', email, password, authType: 'oauth' })
  const { user, token } = signedUp.body.payload
  const mail = createMailReader(home)
  /** Verifies the address of the user by the mailed link. */
  const verify = async () => {
    const answer = await home.anonymous.post('/email/verify', { token: await mail.tokenOf('verification') })
    expect(answer.status).toBe(200)
  }
  return {
    ...home,
    ...{ token, user, email, verify },
    ada: home.anonymous.with({ authorization: `Bearer ${token}` }),
    ...mail,
  }
}

/** Returns functions that run due jobs and read the outbox as an admin. */
export function createMailReader({ tenant, as }: Pick<TestTenant, 'tenant' | 'as'>) {
  const outbox = async (query = ''): Promise<TestResponse['body']> => {
    await runDueJobs(tenant)
    return (await as('admin').get(`/mails?sort=created${query}`)).body
  }
  /** Returns the latest mail of a kind. */
  const latest = async (template: string): Promise<{ text: string; to: string }> =>
    (await outbox()).findLast((mail: { template: string }) => mail.template === template)
  return {
    outbox,
    latest,
    /** Returns the token in the latest mail of a kind. */
    tokenOf: async (template: string) => extractToken((await latest(template)).text),
    /** Returns the code in the latest mail of a kind. */
    codeOf: async (template: string) => extractCode((await latest(template)).text),
  }
}

/** Returns the token of a mail, from its link or a line of its own; an empty string without one. */
export const extractToken = (text: string) =>
  /^([\w-]{43})$/m.exec(text)?.[1] ?? /(?:token=|#)([\w-]{43})\b/.exec(text)?.[1] ?? ''

/** Returns the code of a mail, which is a line of its own; an empty string without one. */
export const extractCode = (text: string) => /^(\d{8})$/m.exec(text)?.[1] ?? ''

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
  /** Verifies the address of the user by the mailed code. */
  const verify = async () => {
    const answer = await home.anonymous.post('/email/verify', { token: await mail.codeOf('verification') })
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
  return {
    outbox,
    /** Returns the code of the latest mail of a kind. */
    codeOf: async (template: string) => {
      const mails = await outbox()
      const { text } = mails.findLast((mail: { template: string }) => mail.template === template)
      return extractCode(text)
    },
  }
}

/** Returns the token of a mail, from a line of its own or a link; an empty string without one. */
export const extractCode = (text: string) =>
  /^([\w-]{43})$/m.exec(text)?.[1] ?? /token=([\w-]{43})\b/.exec(text)?.[1] ?? ''

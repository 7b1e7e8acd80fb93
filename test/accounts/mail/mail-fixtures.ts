import { expect } from 'bun:test'
import { runDueJobs } from '../../../src/jobs/runner'
import { createTestTenant, type TestResponse } from '../../test-tenant'

export const password = 'correct horse'
export const INVALID_TOKEN = [400, 'INVALID_TOKEN']

type House = Awaited<ReturnType<typeof createTestTenant>>

/** A tenant and somebody who has signed up, with what is needed to read the mail of that tenant. */
export async function createMailFixture(email = 'ada@lovelace.test') {
  const home = await createTestTenant()
  const signedUp = await home.stranger.post('/signup', { username: 'ada', email, password, authType: 'oauth' })
  const { user, token } = signedUp.body.payload
  const mail = createMailReader(home)
  /** Has them send the code back that was mailed to them. */
  const verify = async () => {
    const answer = await home.stranger.post('/email/verify', { token: await mail.codeOf('verification') })
    expect(answer.status).toBe(200)
  }
  return {
    ...home,
    ...{ token, user, email, verify },
    ada: home.stranger.with({ authorization: `Bearer ${token}` }),
    ...mail,
  }
}

/** Does what is due, and reads the outbox as an admin does. */
export function createMailReader({ tenant, as }: Pick<House, 'tenant' | 'as'>) {
  const outbox = async (query = ''): Promise<TestResponse['body']> => {
    await runDueJobs(tenant)
    return (await as('admin').get(`/mails?sort=created${query}`)).body
  }
  return {
    outbox,
    /** The code of the latest mail of a kind. */
    codeOf: async (template: string) => {
      const mails = await outbox()
      const { text } = mails.findLast((mail: { template: string }) => mail.template === template)
      return extractCode(text)
    },
  }
}

/** A token where a mail has it: in a line of its own, or in a link. */
export const extractCode = (text: string) =>
  /^([\w-]{43})$/m.exec(text)?.[1] ?? /token=([\w-]{43})\b/.exec(text)?.[1] ?? ''

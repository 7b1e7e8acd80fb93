import { expect } from 'bun:test'
import { runDue } from '../../../src/jobs/runner'
import { type Answer, house } from '../../house'

export const password = 'correct horse'
export const UNKNOWN = [400, 'INVALID_TOKEN']

type House = Awaited<ReturnType<typeof house>>

/** A tenant and somebody who has signed up, with what is needed to read the mail of that tenant. */
export async function inhabited(email = 'ada@lovelace.test') {
  const home = await house()
  const signedUp = await home.stranger.post('/signup', { username: 'ada', email, password, authType: 'oauth' })
  const { user, token } = signedUp.body.payload
  const mail = mailOf(home)
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
export function mailOf({ tenant, as }: Pick<House, 'tenant' | 'as'>) {
  const outbox = async (query = ''): Promise<Answer['body']> => {
    await runDue(tenant)
    return (await as('admin').get(`/mails?sort=created${query}`)).body
  }
  return {
    outbox,
    /** The code of the latest mail of a kind. */
    codeOf: async (template: string) => {
      const mails = await outbox()
      const { text } = mails.findLast((mail: { template: string }) => mail.template === template)
      return codeIn(text)
    },
  }
}

/** A token where a mail has it: in a line of its own, or in a link. */
export const codeIn = (text: string) => /^([\w-]{43})$/m.exec(text)?.[1] ?? /token=([\w-]{43})\b/.exec(text)?.[1] ?? ''

import { beforeAll, describe, expect, test } from 'bun:test'
import { statusAndCode } from '../../test-tenant'
import { setConfiguration } from '../../workspaces/workspace-fixtures'
import { createMailFixture } from './mail-fixtures'

let home: Awaited<ReturnType<typeof createMailFixture>>
beforeAll(async () => {
  home = await createMailFixture()
})

type Mail = { template: string; to: string; subject: string; text: string; state: string }

/** The number of mails that were read before. */
let mailsRead = 0
async function readNewMails() {
  const all: Mail[] = await home.outbox('&limit=1000')
  const fresh = all.slice(mailsRead)
  mailsRead = all.length
  return fresh
}
const readChangeNotices = async () => (await readNewMails()).filter(({ template }) => template === 'emailChanged')

describe('notices to an old e-mail address', () => {
  test('the old address is notified of a change but not told the new one, which must be verified', async () => {
    await readNewMails()
    const changed = await home.ada.post('/me', { email: 'countess@lovelace.test', fullName: 'Ada Lovelace' })
    expect(changed.body).toMatchObject({ email: 'countess@lovelace.test', emailVerified: false })
    const [notice, proof] = await readNewMails()
    expect(notice).toMatchObject({
      ...{ to: 'ada@lovelace.test', template: 'emailChanged', state: 'kept' },
      subject: `Your e-mail address at ${home.id}.test was changed`,
    })
    expect(notice!.text).toStartWith('Hello,\n\nthis is no longer the e-mail address of your account')
    expect(notice!.text).toContain('changed in your profile:')
    expect(JSON.stringify(notice)).not.toContain('countess')
    expect(proof).toMatchObject({ to: 'countess@lovelace.test', template: 'verification' })
  })

  test('the old address is notified of a change by an admin, and the new one counts as verified', async () => {
    const { as, user, ada } = home
    const { email } = (await ada.get('/me')).body
    const changed = await as('admin').put(`/users/${user._id}`, { email: 'augusta@lovelace.test' })
    expect(changed.status).toBe(200)
    expect((await ada.get('/me')).body).toMatchObject({ email: 'augusta@lovelace.test', emailVerified: true })
    const mails = await readNewMails()
    expect(mails.map(({ to, template }) => [to, template])).toEqual([[email, 'emailChanged']])
    expect(mails[0]!.text).toContain('changed by an administrator:')
  })

  test('the old address is notified of its removal, but not of another case, other fields or a rejected change', async () => {
    const { ada } = home
    const { email } = (await ada.get('/me')).body
    await ada.post('/me', { email: email.toUpperCase(), firstName: 'Ada' })
    await ada.post('/me', { username: 'ada2' })
    expect(statusAndCode(await ada.post('/me', { email: `user@${home.id}.test` }))).toEqual([409, 'EMAIL_EXISTS'])
    expect(await readChangeNotices()).toEqual([])
    await ada.post('/me', { email: '' })
    expect((await readChangeNotices()).map(({ to }) => to)).toEqual([email.toUpperCase()])
    await ada.post('/me', { email: 'new@lovelace.test' })
    expect(await readChangeNotices()).toEqual([])
  })

  test('the notice of a changed address uses the mail template of the tenant', async () => {
    const templates = { emailChanged: { subject: 'Goodbye, {{site}}', text: 'At {{site}}, {{time}}.' } }
    await setConfiguration(home.tenant, 'mail-templates', templates)
    await home.ada.post('/me', { email: 'other@lovelace.test' })
    const [notice] = await readChangeNotices()
    expect(notice!.subject).toBe(`Goodbye, ${home.id}`)
    expect(notice!.text).toMatch(/^At t[0-9a-f-]+, \d{4}-\d\d-\d\d \d\d:\d\d UTC\.$/)
  })
})

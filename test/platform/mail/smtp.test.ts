import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { queueMail } from '../../../src/accounts/mail/mails'
import { config } from '../../../src/config'
import { now } from '../../../src/core/clock'
import { runDueJobs } from '../../../src/jobs/runner'
import { createMailFixture, extractCode, extractToken } from '../../accounts/mail/mail-fixtures'
import { advanceClock, MINUTE, resetClock } from '../../accounts/session-fixtures'
import { startSmtpServer } from '../../fakes/smtp-server'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { createWorkspace, setConfiguration } from '../../workspaces/workspace-fixtures'

const HOUR_MS = 60 * MINUTE
let box: Awaited<ReturnType<typeof startSmtpServer>>
beforeAll(async () => {
  box = await startSmtpServer()
  Object.assign(config, { ATOLL_SMTP_URL: box.url, ATOLL_MAIL_FROM: 'The House <house@atoll.test>' })
})
afterEach(resetClock)
afterAll(async () => {
  Object.assign(config, { ATOLL_SMTP_URL: '', ATOLL_MAIL_FROM: 'Atoll <atoll@localhost>' })
  await box.close()
})

const toInvitation = (to: string) => ({
  to,
  template: 'invitation' as const,
  data: { inviter: 'Ada', workspace: 'Öffice' },
})
const sendInvitations = async (...to: string[]) => {
  const { tenant, as, id } = await createTestTenant()
  await tenant.write((tx) => queueMail(tenant, tx, ...to.map(toInvitation)))
  await runDueJobs(tenant)
  const state = async () => (await as('admin').get('/mails?sort=created')).body
  return { tenant, as, id, state }
}

describe('mail by SMTP', () => {
  test('a mail is sent by SMTP in plain text and HTML from the configured address', async () => {
    const to = 'bob@sent.test'
    const { state, id } = await sendInvitations(to)
    const [letter, ...others] = box.to(to)
    expect(others).toEqual([])
    expect(letter!.from).toBe('house@atoll.test')
    expect(letter!.to).toEqual([to])
    expect(letter!.headers).toContain('From: The House <house@atoll.test>')
    expect(letter!.headers).toContain('Auto-Submitted: auto-generated')
    expect(letter!.text).toContain('you are invited to the workspace "Öffice"')
    expect(letter!.html).toContain('<p>you are invited to the workspace &quot;Öffice&quot;')
    const [mail] = await state()
    expect(mail).toMatchObject({
      to,
      state: 'sent',
      subject: `An invitation to a workspace at ${id}.test`,
      text: null,
      html: null,
      error: null,
    })
    expect(letter!.headers).toContain(`Message-ID: <${mail._id}@atoll.test>`)
  })

  test('the name of the product is that of the sender, whatever characters it has', async () => {
    const { tenant, state } = await sendInvitations()
    await setConfiguration(tenant, 'app-configuration', { name: 'Nord, "See" <Café>' })
    await tenant.write((tx) => queueMail(tenant, tx, toInvitation('bob@named.test')))
    await runDueJobs(tenant)
    const [letter] = box.to('bob@named.test')
    expect(letter!.from).toBe('house@atoll.test')
    const from = letter!.headers.match(/^From: ((?:.|\r?\n[ \t])*)/im)![1]!
    expect(from).toEndWith('<house@atoll.test>')
    expect(from).not.toContain('The House')
    const [mail] = await state()
    expect(letter!.headers).toContain(`Message-ID: <${mail._id}@atoll.test>`)
  })

  test('the database never contains the token of a mail in plain text', async () => {
    const { tenant, as, email, user } = await createMailFixture('secret@sent.test')
    const dumpDatabase = async () =>
      JSON.stringify([
        await tenant.db.query('select * from mails'),
        await tenant.db.query('select payload, outcome from jobs'),
        await tenant.db.query('select * from one_time_tokens where "user" = ?', [user._id]),
      ])
    expect(await dumpDatabase()).not.toMatch(/[\w-]{43}"/)
    await runDueJobs(tenant)
    const { text } = box.to(email)[0]!
    const [token, code] = [extractToken(text), extractCode(text)]
    expect([token.length, code.length]).toEqual([43, 8])
    expect(await dumpDatabase()).not.toMatch(new RegExp(`${token}|${code}`))
    expect((await as('admin').get('/mails')).body[0]).toMatchObject({ state: 'sent', text: null, html: null })
  })

  test('a mail is retried while the mail server answers 451', async () => {
    const to = 'busy@sent.test'
    box.refuse(to, 451, 2)
    const { tenant, state } = await sendInvitations(to)
    expect((await state())[0]).toMatchObject({ state: 'waiting', error: 'The mail server answered 451 at RCPT TO.' })
    for (const _ of [1, 2]) {
      advanceClock(HOUR_MS)
      await runDueJobs(tenant)
    }
    expect(box.to(to)).toHaveLength(1)
    expect((await state())[0]).toMatchObject({ state: 'sent', error: null })
  })

  test('a mail that the server rejects with 550 fails at once, and other mails are sent', async () => {
    box.refuse('nobody@sent.test', 550)
    const { state, tenant } = await sendInvitations('nobody@sent.test', 'somebody@sent.test')
    const states = (await state()).map(({ state }: { state: string }) => state)
    expect(states.sort()).toEqual(['failed', 'sent'])
    advanceClock(24 * HOUR_MS)
    expect(await runDueJobs(tenant)).toBe(0)
  })

  test('a mail waits while the server is unreachable and fails after three days', async () => {
    const url = config.ATOLL_SMTP_URL
    config.ATOLL_SMTP_URL = 'smtp://127.0.0.1:1'
    const { state, tenant } = await sendInvitations('gone@sent.test')
    expect((await state())[0]).toMatchObject({
      state: 'waiting',
      error: expect.stringContaining('could not be reached'),
    })
    advanceClock(73 * HOUR_MS)
    await runDueJobs(tenant)
    expect((await state())[0]).toMatchObject({ state: 'failed' })
    config.ATOLL_SMTP_URL = url
  })

  test('an address gets at most twenty mails within an hour, and further ones later', async () => {
    const to = 'flooded@sent.test'
    const { tenant } = await sendInvitations(...Array(20).fill(to))
    await tenant.write((tx) => queueMail(tenant, tx, toInvitation(to), toInvitation('other@sent.test')))
    await runDueJobs(tenant)
    expect([box.to(to).length, box.to('other@sent.test').length]).toEqual([20, 1])
    advanceClock(HOUR_MS + MINUTE)
    await runDueJobs(tenant)
    expect(box.to(to)).toHaveLength(21)
  })

  test('a mail has one recipient and one subject despite line breaks in values and templates', async () => {
    const to = 'target@sent.test'
    const { tenant } = await createTestTenant()
    await setConfiguration(tenant, 'mail-templates', {
      invitation: { subject: 'Hi\r\nBcc: evil@x.test\r\n\r\n{{workspace}}' },
    })
    const data = { inviter: 'x', workspace: 'y\r\nTo: evil' }
    await tenant.write((tx) => queueMail(tenant, tx, { to, template: 'invitation', data }))
    await runDueJobs(tenant)
    const [letter] = box.to(to)
    expect(letter!.to).toEqual([to])
    expect(letter!.headers).toContain('Subject: Hi Bcc: evil@x.test y To: evil\r\n')
    expect(letter!.headers).not.toMatch(/^(Bcc|To: evil)/m)
    expect(box.to('evil@x.test')).toEqual([])
  })

  test('a mail is sent over TLS where the server supports it, with the configured username and password', async () => {
    const logins: unknown[] = []
    const tlsServer = await startSmtpServer({
      ...{ authOptional: false, ...(await certificate()) },
      onAuth: ({ username, password }, _, done) => {
        logins.push([username, password])
        done(null, { user: username })
      },
    })
    const url = config.ATOLL_SMTP_URL
    config.ATOLL_SMTP_URL = `smtp://ada:p%40ss@127.0.0.1:${tlsServer.port}/?tls.rejectUnauthorized=false`
    await sendInvitations('safe@sent.test')
    config.ATOLL_SMTP_URL = url
    await tlsServer.close()
    expect(logins).toEqual([['ada', 'p@ss']])
    expect(tlsServer.letters.map(({ tls }) => tls)).toEqual([true])
  })
})

/** Creates a self-signed certificate. */
async function certificate() {
  const folder = `${config.ATOLL_TENANTS}/tls-${now()}`
  const { exited } = Bun.spawn(
    [
      'openssl',
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-subj',
      '/CN=localhost',
      '-days',
      '2',
      '-keyout',
      `${folder}.key`,
      '-out',
      `${folder}.crt`,
    ],
    { stdout: 'ignore', stderr: 'ignore' },
  )
  await exited
  return { key: await Bun.file(`${folder}.key`).text(), cert: await Bun.file(`${folder}.crt`).text() }
}

describe('mail of invites', () => {
  test('an invite is mailed to the invited address and can be accepted once the address is verified', async () => {
    const { tenant, as, ada, email } = await createMailFixture('invited@sent.test')
    const { _id } = await createWorkspace(as('user'), { name: 'Engine' })
    expect((await as('user').post(`/workspaces/${_id}/invites`, { email, name: 'Countess' })).status).toBe(201)
    await runDueJobs(tenant)
    const letters = box.to(email)
    const letter = letters.find(({ text }) => text.includes('you are invited to the workspace "Engine"'))!
    expect(letter.text).not.toMatch(/Countess|user/)
    const accept = () => ada.post('/invites', { workspace: _id, kind: 'accept' })
    expect(statusAndCode(await accept())).toEqual([409, 'EMAIL_NOT_VERIFIED'])
    const token = letters.map(({ text }) => extractToken(text)).find(Boolean)
    expect((await ada.post('/email/verify', { token })).status).toBe(200)
    expect((await accept()).status).toBe(200)
  })

  test('a changed list of invites is mailed to its new addresses only', async () => {
    const { tenant, as } = await createTestTenant()
    const { _id } = await createWorkspace(as('user'))
    const put = (...names: string[]) =>
      as('user').put(`/workspaces/${_id}`, { invites: names.map((name) => ({ email: `${name}@list.test` })) })
    await put('a', 'b')
    await put('b', 'c')
    await runDueJobs(tenant)
    expect(['a', 'b', 'c'].map((name) => box.to(`${name}@list.test`).length)).toEqual([1, 1, 1])
  })
})

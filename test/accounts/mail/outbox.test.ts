import { afterEach, describe, expect, test } from 'bun:test'
import { and, eq } from 'drizzle-orm'
import { queueMail, removeOld } from '../../../src/accounts/mail/mails'
import { mails } from '../../../src/accounts/mail/tables'
import { config } from '../../../src/config'
import { runDueJobs } from '../../../src/jobs/runner'
import { withLease } from '../../../src/jobs/with-lease'
import { toPlainDevice, toPlainName } from '../../../src/platform/mail/plain-text'
import { renderMail } from '../../../src/platform/mail/templates'
import { setHosts } from '../../../src/tenancy/tenants'
import { ID, TIME } from '../../expectations'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { createWorkspace, setConfiguration } from '../../workspaces/workspace-fixtures'
import { advanceClock, DAY, resetClock } from '../session-fixtures'
import { createMailFixture, password } from './mail-fixtures'

afterEach(resetClock)

describe('the outbox without a mail server', () => {
  test('mail is kept in the outbox, where admins can read it', async () => {
    const { id, outbox, user, email } = await createMailFixture()
    const [mail, ...others] = await outbox()
    expect(others).toEqual([])
    expect(mail).toEqual({
      _id: ID,
      to: email,
      template: 'verification',
      user: user._id,
      state: 'kept',
      subject: `Confirm your e-mail address for ${id}.test`,
      text: expect.stringMatching(/^Hello,\n\nsomebody entered this e-mail address.*\n\n\d{8}\n\n/),
      html: expect.stringMatching(/^<p>Hello,<\/p>/),
      error: null,
      created: TIME,
      sent: null,
    })
  })

  test('the outbox is accessible to admins of its tenant only; users get 403 and anonymous requests 401', async () => {
    const { as, anonymous, outbox } = await createMailFixture()
    await outbox()
    for (const name of ['user', 'editor'] as const)
      expect(statusAndCode(await as(name).get('/mails'))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await anonymous.get('/mails'))).toEqual([401, 'UNAUTHENTICATED'])
    const otherTenant = await createTestTenant()
    expect((await otherTenant.as('admin').get('/mails')).body).toEqual([])
  })

  test('the outbox is paged and counted, and can be filtered by address and state', async () => {
    const { tenant, as, outbox } = await createMailFixture()
    const letters = ['a', 'b', 'c'].map((name) => ({ to: `${name}@x.test`, template: 'invitation' as const }))
    await tenant.write((tx) => queueMail(tenant, tx, ...letters))
    await outbox()
    const page = await as('admin').get('/mails?limit=2&sort=to&count=true')
    expect(page.body.map(({ to }: { to: string }) => to)).toEqual(['a@x.test', 'ada@lovelace.test'])
    expect(page.headers.get('x-total-count')).toBe('4')
    expect(page.headers.get('link')).toContain('rel="next"')
    expect(page.headers.get('cache-control')).toBe('no-store')
    expect((await as('admin').get('/mails?to=B@X.test')).body).toHaveLength(1)
    expect((await as('admin').get('/mails?state=kept')).body).toHaveLength(4)
    expect((await as('admin').get('/mails?state=sent')).body).toEqual([])
    expect(statusAndCode(await as('admin').get('/mails?state=lost'))).toEqual([400, 'INVALID_INPUT'])
  })

  test('mail in the outbox is deleted after a month', async () => {
    const { tenant, outbox } = await createMailFixture()
    const clean = () => withLease(tenant, 'test', removeOld)
    advanceClock(29 * DAY)
    await clean()
    expect(await outbox()).toHaveLength(1)
    advanceClock(2 * DAY)
    await clean()
    expect(await outbox()).toEqual([])
  })

  test('mail to a user who has changed their address or does not exist fails without being rendered', async () => {
    const { tenant, outbox, ada } = await createMailFixture()
    await ada.post('/me', { email: 'countess@lovelace.test' })
    const [old, notice, verification] = await outbox()
    expect(notice).toMatchObject({ state: 'kept', to: 'ada@lovelace.test', template: 'emailChanged' })
    expect(old).toMatchObject({ state: 'failed', text: null, error: expect.stringContaining('another address') })
    expect(verification).toMatchObject({ state: 'kept', to: 'countess@lovelace.test', template: 'verification' })
    await tenant.write((tx) => queueMail(tenant, tx, { to: 'x@x.test', template: 'newDevice', user: 'nobody' }))
    expect((await outbox()).at(-1)).toMatchObject({ state: 'failed' })
  })
})

describe('text of users in mails', () => {
  // The name of the tenant is random, and may have any digits.
  const withoutIds = (text: string) => text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '')
  const scamText = 'Your account is locked, call +1 555 0100 or see http://evil.example'

  test('the verification mail contains no text that the sign-up provided', async () => {
    const { anonymous, outbox } = await createMailFixture()
    const person = {
      username: scamText,
      firstName: scamText,
      lastName: 'evil.example',
      fullName: scamText,
      name: scamText,
    }
    const email = 'victim@x.test'
    expect((await anonymous.post('/signup', { ...person, email, password: 'correct horse' })).status).toBe(201)
    const { subject, text, html } = (await outbox()).at(-1)
    expect(withoutIds(`${subject}${text}${html}`)).not.toMatch(/evil|locked|555/)
  })

  test('an invitation shows the workspace name shortened, and omits it where it resembles a link or phone number', async () => {
    const { as, outbox } = await createMailFixture()
    const invitationTo = async (workspace: string) => {
      const { _id } = await createWorkspace(as('user'), { name: workspace })
      const email = `${crypto.randomUUID()}@x.test`
      await as('user').post(`/workspaces/${_id}/invites`, { email, name: scamText })
      const mail = (await outbox()).find(({ to }: { to: string }) => to === email)
      expect(withoutIds(`${mail.subject}${mail.text}`)).not.toMatch(/evil|locked|555/)
      return mail.text as string
    }
    await as('user').post('/me', { fullName: scamText })
    expect(await invitationTo('Analytical Engine & Co.')).toContain('to the workspace "Analytical Engine & Co." at')
    expect(await invitationTo(`${'Long '.repeat(30)}http`)).toContain(`"${'Long '.repeat(8)}" at`)
    for (const name of [
      'http://evil.example',
      'see evil.example now',
      'evil\u3002example',
      'ｅｖｉｌ．example',
      'a@evil',
    ])
      expect(await invitationTo(name), name).toContain('you are invited to a workspace at')
    for (const name of ['call 0800 555 0100', 'ev\u200dil.example', '+1-555-0100'])
      expect(await invitationTo(name), name).toContain('you are invited to a workspace at')
  })

  test('the mail about a new device shows at most 120 characters of the user agent and no links', () => {
    expect(toPlainDevice('Mozilla/5.0 (X11; Linux) Chrome/120.0.0.0')).toBe('Mozilla/5.0 (X11; Linux) Chrome/120.0.0.0')
    expect(toPlainDevice('Locked! See https://evil.example or\nwww.evil or evil.example')).toBe('Locked! See or or')
    expect(toPlainDevice('x'.repeat(300))).toHaveLength(120)
  })

  test.each([
    ['St. Mary’s School', 'St. Mary’s School'],
    ['J. R. R. Tolkien', 'J. R. R. Tolkien'],
    ['Müller & Söhne GmbH', 'Müller & Söhne GmbH'],
    ['Team 42', 'Team 42'],
    ['J.R.R. Tolkien', 'J.R.R. Tolkien'],
    ['Wait... what?', 'Wait... what?'],
    ['node.js', ''],
    ['t.me/support', ''],
    ['see 4.example', ''],
    ['secure-bank-a.example', ''],
    ['भाषा.example', ''],
    ['a\u202eb\nc', 'ab c'],
  ])('toPlainName turns %j into %j', (name, shown) => {
    expect(toPlainName(name)).toBe(shown)
  })
})

describe('mails of a tenant without a website', () => {
  test('links lead to pages of the server at the first host of the tenant, and no mail tells people about the API', async () => {
    const { id, outbox, as, anonymous, verify } = await createMailFixture()
    await verify()
    await anonymous.post('/password/forgot', { email: 'ada@lovelace.test' })
    const { _id } = await createWorkspace(as('user'))
    await as('user').post(`/workspaces/${_id}/invites`, { email: 'guest@x.test' })
    const texts = (await outbox()).map(({ text }: { text: string }) => text)
    for (const page of ['verify-email#', 'reset-password#', 'account'])
      expect(texts.join()).toContain(`\nhttps://${id}.test/admin/${page}`)
    for (const text of texts) expect(text).not.toMatch(/POST|GET|\/api/)
  })

  test('links name the port of a localhost host, and the tenant where no host leads to it', async () => {
    const { id, outbox, ada, tenant } = await createMailFixture()
    const sentFrom = async (...hosts: string[]) => {
      await ada.post('/email/verification')
      await setHosts(id, hosts)
      await runDueJobs(tenant)
      await setHosts(id, [`${id}.test`])
      return (await outbox()).at(-1).text
    }
    const port = config.ATOLL_PORT
    expect(await sentFrom(`${id}.localhost`)).toContain(`\nhttp://${id}.localhost:${port}/admin/verify-email#`)
    expect(await sentFrom()).toContain(`\nhttp://localhost:${port}/admin/verify-email?tenant=${id}#`)
    expect(await sentFrom('127.0.0.1', 'app.example.com')).toContain('\nhttps://app.example.com/admin/verify-email#')
  })
})

describe('the name of the product in mails', () => {
  test('mails call the product by its name, else by its host, and never by the id of the tenant', async () => {
    const { id, as, ada, outbox, tenant } = await createMailFixture()
    const subjectWith = async (metadata: object, ...hosts: string[]) => {
      await as('admin').put('/configurations/app-configuration', { metadata: { name: null, websiteUrls: null } })
      expect((await as('admin').put('/configurations/app-configuration', { metadata })).status).toBe(200)
      await ada.post('/email/verification')
      await setHosts(id, hosts)
      await runDueJobs(tenant)
      await setHosts(id, [`${id}.test`])
      return (await outbox()).at(-1).subject
    }
    const websiteUrls = ['https://www.example.com']
    expect(await subjectWith({ name: ' Paper\n Boats ', websiteUrls })).toEndWith(' for Paper Boats')
    expect(await subjectWith({ name: '', websiteUrls })).toEndWith(' for www.example.com')
    expect(await subjectWith({}, 'boats.example.com')).toEndWith(' for boats.example.com')
    expect(await subjectWith({})).toEndWith(' for this service')
  })
})

test('an address has at most twenty waiting mails of one kind that strangers can cause', async () => {
  const { tenant, anonymous, verify, outbox } = await createMailFixture()
  await verify()
  const countWaiting = (template: 'newDevice') =>
    tenant.db.$count(mails, and(eq(mails.template, template), eq(mails.state, 'waiting')))
  for (let n = 0; n < 24; n++) {
    const browser = { 'user-agent': `browser ${n}` }
    expect((await anonymous.post('/signin', { username: 'ada', password }, browser)).status).toBe(200)
  }
  expect(await countWaiting('newDevice')).toBe(20)
  await outbox()
  expect(await countWaiting('newDevice')).toBe(0)
  expect((await anonymous.post('/signin', { username: 'ada', password }, { 'user-agent': 'another' })).status).toBe(200)
  expect(await countWaiting('newDevice')).toBe(1)
})

describe('mail templates of a tenant', () => {
  test('the template of a tenant replaces the default text and link, and leaves the name of an unverified user empty', async () => {
    const { tenant, outbox, ada } = await createMailFixture()
    await setConfiguration(tenant, 'mail-templates', {
      verification: {
        subject: 'Welcome, {{name}}',
        text: 'Here: {{link}}',
        html: '<b>{{name}}</b> <a href="{{link}}">here</a>',
        link: 'https://app.example.com/hello/{{token}}?of={{name}}',
      },
    })
    await ada.post('/me', { fullName: 'Ada & <Lovelace>', email: 'b@x.test' })
    const mail = (await outbox()).at(-1)
    expect(mail.subject).toBe('Welcome,')
    expect(mail.text).toMatch(/^Here: https:\/\/app\.example\.com\/hello\/[\w-]{43}\?of=$/)
    expect(mail.html).toStartWith('<b></b> <a href="https://app.example.com/hello/')
  })

  test('an invalid template is ignored', async () => {
    const { tenant, outbox } = await createMailFixture()
    await setConfiguration(tenant, 'mail-templates', { verification: { subject: 7 }, invitation: 'no' })
    expect((await outbox())[0]).toMatchObject({
      state: 'kept',
      subject: expect.stringMatching(/^Confirm your e-mail address for /),
    })
  })

  test('links in mails lead to the website of the tenant', async () => {
    const { tenant, outbox } = await createMailFixture()
    await setConfiguration(tenant, 'app-configuration', {
      websiteUrls: ['https://www.example.com/app/', 'https://b.test'],
    })
    const { text, html } = (await outbox())[0]
    expect(text).toMatch(
      /address at www\.example\.com\.[\s\S]*\n\nhttps:\/\/www\.example\.com\/app\/verify-email\?token=[\w-]{43}\n\n/,
    )
    expect(html).toMatch(/<a href="(https:\/\/www\.example\.com\/app\/verify-email\?token=[\w-]{43})">\1<\/a>/)
  })
})

describe('renderMail', () => {
  const render = (text: string, values = {}, more = {}) => renderMail({ subject: '{{name}}', text, ...more }, values)

  test('renderMail renders a # section where there is a value and a ^ section where there is none', () => {
    const text = 'a{{#x}}b{{x}}{{#y}}c{{/y}}{{/x}}{{^x}}d{{/x}}e'
    expect(render(text).text).toBe('ade')
    expect(render(text, { x: '1' }).text).toBe('ab1e')
    expect(render(text, { x: '1', y: '2' }).text).toBe('ab1ce')
  })

  test('renderMail renders values literally and ignores inherited properties', () => {
    expect(render('{{x}}{{constructor}}{{__proto__}}', { x: '{{y}}', y: 'no' }).text).toBe('{{y}}')
  })

  test('renderMail removes line breaks and control characters from the subject', () => {
    const { subject } = render('', { name: 'x\r\nBcc: a@b.test\u2028\u0000y' })
    expect(subject).toBe('x Bcc: a@b.test y')
    expect(render('', { name: 'Ada\u202etset.live\u2066' }).subject).toBe('Ada tset.live')
  })

  test('renderMail escapes values in HTML, also in HTML that is made of the text', () => {
    const { html } = render(
      'Hi {{name}}\n\n{{link}}',
      { name: '<script>"\'&' },
      { link: 'https://x.test/?a=1&n={{name}}' },
    )
    expect(html).toStartWith('<p>Hi &lt;script&gt;&quot;&#x27;&amp;</p>')
    expect(html).toContain('<a href="https://x.test/?a=1&amp;n=%3Cscript%3E%22')
  })

  test('renderMail renders a malformed template and 1,600 nested sections without an error', () => {
    expect(render('{{/x}}a{{#x}}b{{/y}}{{ x }}{{}}').text).toBe('a{{ x }}{{}}')
    const many = '{{#x}}'.repeat(1_600)
    expect(render(many, { x: '1' }).text).toBe('')
  })
})

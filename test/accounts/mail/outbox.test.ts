import { afterEach, describe, expect, test } from 'bun:test'
import { post, removeOld } from '../../../src/accounts/mail/mails'
import { written } from '../../../src/accounts/mail/templates'
import { holding } from '../../../src/jobs/holding'
import { house, refusal } from '../../house'
import { backToNow, DAY, later } from '../people'
import { configure, ID, TIME } from '../workspaces/kit'
import { inhabited } from './kit'

afterEach(backToNow)

describe('without a mail server', () => {
  test('mail is kept, and admins see what it says', async () => {
    const { outbox, user, email } = await inhabited()
    const [mail, ...others] = await outbox()
    expect(others).toEqual([])
    expect(mail).toEqual({
      _id: ID,
      to: email,
      template: 'verification',
      user: user._id,
      state: 'kept',
      subject: 'Confirm your e-mail address',
      text: expect.stringMatching(/^Hello,\n\nthis e-mail address.*\n\n[\w-]{43}\n\n/),
      html: expect.stringMatching(/^<p>Hello,<\/p>/),
      error: null,
      created: TIME,
      sent: null,
    })
  })

  test('nobody else does, and no other tenant', async () => {
    const { as, stranger, outbox } = await inhabited()
    await outbox()
    for (const name of ['user', 'editor'] as const)
      expect(refusal(await as(name).get('/mails'))).toEqual([403, 'FORBIDDEN'])
    expect(refusal(await stranger.get('/mails'))).toEqual([401, 'UNAUTHENTICATED'])
    const abroad = await house()
    expect((await abroad.as('admin').get('/mails')).body).toEqual([])
  })

  test('the list is paged, counted, and found by address and state', async () => {
    const { tenant, as, outbox } = await inhabited()
    const letters = ['a', 'b', 'c'].map((name) => ({ to: `${name}@x.test`, template: 'invitation' as const }))
    await tenant.write((tx) => post(tenant, tx, ...letters))
    await outbox()
    const page = await as('admin').get('/mails?limit=2&sort=to&count=true')
    expect(page.body.map(({ to }: { to: string }) => to)).toEqual(['a@x.test', 'ada@lovelace.test'])
    expect(page.headers.get('x-total-count')).toBe('4')
    expect(page.headers.get('link')).toContain('rel="next"')
    expect(page.headers.get('cache-control')).toBe('no-store')
    expect((await as('admin').get('/mails?to=B@X.test')).body).toHaveLength(1)
    expect((await as('admin').get('/mails?state=kept')).body).toHaveLength(4)
    expect((await as('admin').get('/mails?state=sent')).body).toEqual([])
    expect(refusal(await as('admin').get('/mails?state=lost'))).toEqual([400, 'INVALID_INPUT'])
  })

  test('it goes after a month', async () => {
    const { tenant, outbox } = await inhabited()
    const clean = () => holding(tenant, 'test', removeOld)
    later(29 * DAY)
    await clean()
    expect(await outbox()).toHaveLength(1)
    later(2 * DAY)
    await clean()
    expect(await outbox()).toEqual([])
  })

  test('mail to who has another address by then, or is gone, is not made', async () => {
    const { tenant, outbox, ada } = await inhabited()
    await ada.post('/me', { email: 'countess@lovelace.test' })
    const [old, notice, fresh] = await outbox()
    expect(notice).toMatchObject({ state: 'kept', to: 'ada@lovelace.test', template: 'emailChanged' })
    expect(old).toMatchObject({ state: 'failed', text: null, error: expect.stringContaining('another address') })
    expect(fresh).toMatchObject({ state: 'kept', to: 'countess@lovelace.test', template: 'verification' })
    await tenant.write((tx) => post(tenant, tx, { to: 'x@x.test', template: 'newDevice', user: 'nobody' }))
    expect((await outbox()).at(-1)).toMatchObject({ state: 'failed' })
  })
})

describe('a tenant’s own words', () => {
  test('take the place of ours, with a link to a page of its own, and greet nobody by a name that a stranger gave', async () => {
    const { tenant, outbox, ada } = await inhabited()
    await configure(tenant, 'mail-templates', {
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

  test('what does not fit counts as not set', async () => {
    const { tenant, outbox } = await inhabited()
    await configure(tenant, 'mail-templates', { verification: { subject: 7 }, invitation: 'no' })
    expect((await outbox())[0]).toMatchObject({ state: 'kept', subject: 'Confirm your e-mail address' })
  })

  test('links lead to the tenant’s website where it has one', async () => {
    const { tenant, outbox } = await inhabited()
    await configure(tenant, 'app-configuration', { websiteUrls: ['https://www.example.com/app/', 'https://b.test'] })
    const { text, html } = (await outbox())[0]
    expect(text).toMatch(
      /given to www\.example\.com\. Confirm it here:\n\nhttps:\/\/www\.example\.com\/app\/verify-email\?token=[\w-]{43}\n\n/,
    )
    expect(html).toMatch(/<a href="(https:\/\/www\.example\.com\/app\/verify-email\?token=[\w-]{43})">\1<\/a>/)
  })
})

describe('a template', () => {
  const make = (text: string, values = {}, more = {}) => written({ subject: '{{name}}', text, ...more }, values)

  test('shows a section where there is a value, or where there is none', () => {
    const text = 'a{{#x}}b{{x}}{{#y}}c{{/y}}{{/x}}{{^x}}d{{/x}}e'
    expect(make(text).text).toBe('ade')
    expect(make(text, { x: '1' }).text).toBe('ab1e')
    expect(make(text, { x: '1', y: '2' }).text).toBe('ab1ce')
  })

  test('never takes a value for a part of itself, nor what every object has for a value', () => {
    expect(make('{{x}}{{constructor}}{{__proto__}}', { x: '{{y}}', y: 'no' }).text).toBe('{{y}}')
  })

  test('cannot begin another header, whatever somebody is called', () => {
    const { subject } = make('', { name: 'x\r\nBcc: a@b.test\u2028\u0000y' })
    expect(subject).toBe('x Bcc: a@b.test y')
    expect(make('', { name: 'Ada\u202etset.live\u2066' }).subject).toBe('Ada tset.live')
  })

  test('is escaped in HTML, also where that is made of the text', () => {
    const { html } = make(
      'Hi {{name}}\n\n{{link}}',
      { name: '<script>"\'&' },
      { link: 'https://x.test/?a=1&n={{name}}' },
    )
    expect(html).toStartWith('<p>Hi &lt;script&gt;&quot;&#x27;&amp;</p>')
    expect(html).toContain('<a href="https://x.test/?a=1&amp;n=%3Cscript%3E%22')
  })

  test('that is broken is filled as far as it goes, in no time', () => {
    expect(make('{{/x}}a{{#x}}b{{/y}}{{ x }}{{}}').text).toBe('a{{ x }}{{}}')
    const many = '{{#x}}'.repeat(1_600)
    expect(make(many, { x: '1' }).text).toBe('')
  })
})

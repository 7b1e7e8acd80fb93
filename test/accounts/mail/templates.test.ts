import { describe, expect, test } from 'bun:test'
import { listTenantWarnings } from '../../../src/commands/warnings'
import { config } from '../../../src/config'
import { setHosts } from '../../../src/tenancy/tenants'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { setConfiguration } from '../../workspaces/workspace-fixtures'
import { createMailFixture } from './mail-fixtures'

describe('the templates of mails', () => {
  test('the list has the standard texts, the parts that the tenant replaced, and the placeholders', async () => {
    const { as, tenant } = await createMailFixture()
    await setConfiguration(tenant, 'mail-templates', { invitation: { subject: 'Join {{site}}' } })
    const { body } = await as('admin').get('/mails/templates')
    expect(body.map(({ name }: { name: string }) => name)).toEqual([
      ...['verification', 'passwordReset', 'emailSignIn', 'invitation', 'message', 'newDevice'],
      ...['passwordRemoved', 'emailChanged'],
    ])
    expect(body[3]).toEqual({
      name: 'invitation',
      standard: {
        subject: 'An invitation to a workspace at {{product}}',
        text: expect.stringContaining('you are invited to'),
        html: null,
        link: `https://${tenant.tenant}.test/admin/account`,
      },
      custom: { subject: 'Join {{site}}' },
      placeholders: ['product', 'workspace', 'link'],
    })
  })

  test('a preview fills a draft with sample values, and escapes them in HTML only', async () => {
    const { as, tenant } = await createMailFixture()
    const draft = { subject: 'Hi {{name}}', text: '{{inviter}} at {{site}}', html: '<b>{{workspace}}</b>' }
    const preview = await as('admin').post('/mails/templates/invitation/preview', draft)
    expect(preview.body).toEqual({
      subject: 'Hi Ada Lovelace',
      text: `Grace Hopper at ${tenant.tenant}`,
      html: '<b>Engineering</b>',
    })
    const standard = await as('admin').post('/mails/templates/newDevice/preview', {})
    expect(standard.body.text).toContain('Firefox on Linux')
    expect(standard.body.html).toStartWith('<p>Hello Ada Lovelace,</p>')
  })

  test('times in mails use the time zone of the tenant, to the minute', async () => {
    const { as, tenant } = await createMailFixture()
    const preview = async () =>
      (await as('admin').post('/mails/templates/newDevice/preview', { text: '{{time}}' })).body
    expect((await preview()).text).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d UTC$/)
    await setConfiguration(tenant, 'app-configuration', { timezone: 'Asia/Kathmandu' })
    expect((await preview()).text).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d \(Asia\/Kathmandu\)$/)
  })

  test('doctor warns where mail is sent whose links lead to the own machine', async () => {
    const { tenant } = await createTestTenant()
    const warned = async () => (await listTenantWarnings(tenant.tenant)).map(({ code }) => code)
    try {
      config.ATOLL_SMTP_URL = 'smtp://127.0.0.1:9'
      expect(await warned()).toEqual([])
      await setHosts(tenant.tenant, [`${tenant.tenant}.localhost`])
      expect(await warned()).toEqual(['LOCAL_MAIL_LINKS'])
      await setConfiguration(tenant, 'app-configuration', { websiteUrls: ['https://acme.example'] })
      expect(await warned()).toEqual([])
    } finally {
      config.ATOLL_SMTP_URL = ''
    }
  })

  test('a test mail goes to the own address, as the saved template makes it', async () => {
    const { as, anonymous, outbox, tenant } = await createMailFixture()
    await setConfiguration(tenant, 'mail-templates', { message: { subject: 'News: {{subject}}' } })
    const { body: admin } = await as('admin').get('/me')
    expect((await as('admin').post('/mails/templates/message/test')).body).toEqual({ success: true })
    const mail = (await outbox()).at(-1)
    expect(mail).toMatchObject({ to: admin.email, template: 'message', subject: 'News: A message', state: 'kept' })
    const credentials = { username: 'silent', password: 'correct horse' }
    await as('admin').post('/users', { ...credentials, roles: ['admin'] })
    const { body } = await anonymous.post('/signin', { ...credentials, authType: 'oauth' })
    const silent = anonymous.with({ authorization: `Bearer ${body.payload.token}` })
    expect(statusAndCode(await silent.post('/mails/templates/message/test'))).toEqual([409, 'NO_EMAIL'])
  })

  test('the token in a test mail is a sample: an address that is not verified gets no reset of the password', async () => {
    const { as, outbox, tenant } = await createMailFixture()
    const listTokens = () => tenant.db.query('select hash from one_time_tokens')
    await outbox()
    const before = await listTokens()
    for (const name of ['passwordReset', 'verification', 'emailChanged']) {
      await as('admin').post(`/mails/templates/${name}/test`)
      expect((await outbox()).at(-1)).toMatchObject({ template: name, text: expect.stringContaining('sample-token') })
    }
    expect(await listTokens()).toEqual(before)
  })

  test('unknown templates and misspelled parts are refused, and only admins see templates', async () => {
    const { as, anonymous } = await createTestTenant()
    const path = '/mails/templates/goodbye'
    expect(statusAndCode(await as('admin').post(`${path}/preview`, {}))).toEqual([404, 'TEMPLATE_NOT_FOUND'])
    expect(statusAndCode(await as('admin').post(`${path}/test`))).toEqual([404, 'TEMPLATE_NOT_FOUND'])
    const misspelled = await as('admin').post('/mails/templates/message/preview', { subjct: 'x' })
    expect(statusAndCode(misspelled)).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await as('user').get('/mails/templates'))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await anonymous.get('/mails/templates'))).toEqual([401, 'UNAUTHENTICATED'])
  })
})

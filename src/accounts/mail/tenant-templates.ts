import type { Static } from '@sinclair/typebox'
import { now, toIsoString } from '../../core/clock'
import { notFound, Problem } from '../../core/problem'
import { success } from '../../core/shapes'
import { type TimeZone, UTC } from '../../core/time-zone'
import { toPlainValues } from '../../platform/mail/plain-text'
import { type TemplateChange, templateSettings } from '../../platform/mail/template-settings'
import { type Mail, renderMail, type Template, type TemplateName, templates } from '../../platform/mail/templates'
import { appSettings, resolveTimeZone } from '../../platform/settings/app-settings'
import { getSettings } from '../../platform/settings/tenant-settings'
import type { Tenant } from '../../tenancy/tenants'
import type { Ctx } from '../context'
import { fullNameOf, getUser } from '../users/users'
import { assertMailQuota, queueRepeatableMail } from './mails'
import { getApiUrl, getPublicHost, toOwnPage } from './server-address'
import type { MailTemplate } from './shapes'

/** Returns a template as the tenant uses it: its own parts, and the standard ones for the rest. */
export async function getTemplate(tenant: Tenant, name: TemplateName): Promise<Template> {
  return { ...(await getStandardTemplate(tenant, name)), ...(await getSettings(tenant, templateSettings))[name] }
}

/** Returns the values of a mail, with its moment as the clocks of the tenant show it: 2027-10-31 02:30 (Europe/Berlin). */
export async function toShownValues(tenant: Tenant, name: TemplateName, values: Record<string, string>) {
  const { time } = values
  const shown = time && { time: formatMoment(await resolveTimeZone(tenant, undefined), Date.parse(time)) }
  return { ...(await getCommonValues(tenant)), ...toPlainValues(name, { ...values, ...shown }) }
}

const formatMoment = (zone: TimeZone, moment: number) =>
  `${zone.format(moment).slice(0, 16).replace('T', ' ')} ${zone === UTC ? 'UTC' : `(${zone.name})`}`

/** The link of a standard template leads to a page of the tenant's first website, else to one of this server. */
async function getStandardTemplate(tenant: Tenant, name: TemplateName): Promise<Template> {
  const { page, ...standard } = templates[name]
  if (!page) return standard
  const [website] = (await getSettings(tenant, appSettings)).websiteUrls
  const link = website ? website.replace(/\/+$/, '') + page.ofWebsite : await toOwnPage(tenant, page.own)
  return { ...standard, link }
}

/** Returns the name of a tenant's product, or an empty string where it has none. */
export const getProductName = async (tenant: Tenant) =>
  toProductName((await getSettings(tenant, appSettings)).name ?? '')

/** Returns the values that the mails of a tenant have in common. */
async function getCommonValues(tenant: Tenant) {
  const { websiteUrls } = await getSettings(tenant, appSettings)
  const host = URL.parse(websiteUrls[0] ?? '')?.host
  return {
    product: (await getProductName(tenant)) || host || (await getPublicHost(tenant)) || NAMELESS_PRODUCT,
    site: host ?? tenant.tenant,
    api: await getApiUrl(tenant),
  }
}

const MAX_PRODUCT_NAME_LENGTH = 60
/** What mails call a product without a name, a website or a host. */
const NAMELESS_PRODUCT = 'this service'

const toProductName = (name: string) => [...name.replace(/\s+/g, ' ').trim()].slice(0, MAX_PRODUCT_NAME_LENGTH).join('')

const NAMES = Object.keys(templates) as TemplateName[]
const PLACEHOLDER = /\{\{[#^]?([\w.]+)\}\}/g

/** Returns the templates of a tenant, with the standard texts that apply where it has none of its own. */
export async function listTemplates(ctx: Ctx): Promise<MailTemplate[]> {
  const custom = await getSettings(ctx, templateSettings)
  return Promise.all(
    NAMES.map(async (name) => {
      const { subject, text, link = null } = await getStandardTemplate(ctx, name)
      const placeholders = [...`${subject} ${text}`.matchAll(PLACEHOLDER)].map(([, placeholder = '']) => placeholder)
      const standard = { subject, text, html: null, link }
      return { name, standard, custom: custom[name] ?? {}, placeholders: [...new Set(placeholders)] }
    }),
  )
}

const sampleValues = () => ({
  name: 'Ada Lovelace',
  inviter: 'Grace Hopper',
  workspace: 'Engineering',
  token: 'sample-token',
  code: '12345678',
  time: toIsoString(now()),
  device: 'Firefox on Linux',
  address: '203.0.113.7',
  subject: 'A message',
  text: 'The text that an integration sends.',
})

/** Returns a mail with sample values, as a template with these parts would make it. @throws 404 TEMPLATE_NOT_FOUND */
export async function previewTemplate(ctx: Ctx, key: string, change: Static<typeof TemplateChange>): Promise<Mail> {
  const name = assertTemplateName(key)
  const values = await toShownValues(ctx, name, sampleValues())
  return renderMail({ ...(await getStandardTemplate(ctx, name)), ...change }, values)
}

/**
 * Queues a mail of a template to the caller's own address.
 * @throws 403 QUOTA_EXCEEDED, 404 TEMPLATE_NOT_FOUND, 409 NO_EMAIL
 */
export async function sendTestMail(ctx: Ctx, key: string) {
  const template = assertTemplateName(key)
  const user = await getUser(ctx, ctx.actor.user)
  const to = user.email
  if (!to) throw new Problem(409, 'NO_EMAIL', 'Add an e-mail address to your profile first.')
  await assertMailQuota(ctx)
  const data = { ...sampleValues(), name: fullNameOf(user) || user.username }
  await ctx.write((tx) => queueRepeatableMail(ctx, tx, { to, template, user: user._id, data }))
  return success
}

const assertTemplateName = (name: string): TemplateName => NAMES.find((each) => each === name) ?? notFound('template')

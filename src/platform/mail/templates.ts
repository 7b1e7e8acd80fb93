import type { Static } from '@sinclair/typebox'
import type { templateSettings } from './template-settings'

export type TemplateName = keyof Static<typeof templateSettings.shape>
/** The texts of a mail, with placeholders that `fillTemplate` replaces. */
export type Template = {
  subject: string
  text: string
  /** The path of the page on the tenant's website that handles the mail. */
  path?: string
  /** Default: generated from the text. */
  html?: string
  link?: string
}
/** The content of a mail. */
export type Mail = { subject: string; text: string; html: string }

const API_URL_TEMPLATE = '{{#api}}{{api}}{{/api}}{{^api}}/api{{/api}}'

/** Returns the text for a link if the tenant has a website, else for the code and the route that accepts it. */
const linkOrCode = (link: string, code: string, route: string) =>
  `{{#link}}${link}\n\n{{link}}{{/link}}{{^link}}${code}\n\n{{token}}\n\nEnter it in the app that asked for it, or send it as the token to POST ${API_URL_TEMPLATE}${route}.{{/link}}`

/** The default texts of mails. */
export const templates: Record<TemplateName, Template> = {
  verification: {
    subject: 'Confirm your e-mail address',
    path: '/verify-email?token={{token}}',
    text: `Hello,

somebody entered this e-mail address at {{site}}. ${linkOrCode('Confirm it here:', 'This code confirms it:', '/email/verify')}

If this was not you, ignore this mail.`,
  },
  passwordReset: {
    subject: 'Choose a new password',
    path: '/reset-password?token={{token}}',
    text: `Hello{{#name}} {{name}}{{/name}},

somebody asked for a new password for your account at {{site}}. ${linkOrCode('Choose one within an hour:', 'This code is valid for one hour:', '/password/reset')}

If this was not you, ignore this mail. Your password stays as it is.`,
  },
  emailSignIn: {
    subject: 'Sign in to {{site}}',
    path: '/sign-in?token={{token}}',
    text: `Hello,

somebody asked to sign in at {{site}} with this e-mail address. Enter this code where you asked for it:

{{code}}

{{#link}}Or open this link:

{{link}}

{{/link}}This mail lets you sign in once, within the next 15 minutes. Do not pass it on to anybody.

If this was not you, ignore this mail.`,
  },
  invitation: {
    subject: 'An invitation to a workspace at {{site}}',
    path: '/invites',
    text: `Hello,

you are invited to {{#workspace}}the workspace "{{workspace}}"{{/workspace}}{{^workspace}}a workspace{{/workspace}} at {{site}}. {{#link}}Sign in there with this e-mail address to accept or to decline:

{{link}}{{/link}}{{^link}}To accept or to decline:

1. Sign in with this e-mail address, or sign up with it: POST ${API_URL_TEMPLATE}/signin or ${API_URL_TEMPLATE}/signup.
2. Confirm the address by the code that is mailed to you: POST ${API_URL_TEMPLATE}/email/verify.
3. Find the invitation by GET ${API_URL_TEMPLATE}/invites, and answer it by POST ${API_URL_TEMPLATE}/invites.{{/link}}

If you do not expect this, ignore this mail.`,
  },
  /** A mail of an integration. */
  message: { subject: '{{subject}}', text: '{{text}}' },
  newDevice: {
    subject: 'A new sign-in at {{site}}',
    text: `Hello{{#name}} {{name}}{{/name}},

somebody signed in to your account at {{site}} from a new device:

{{time}}
{{device}}
{{address}}

If this was not you, change your password. That ends all other sessions.`,
  },
  passwordRemoved: {
    subject: 'Your password at {{site}} was removed',
    text: `Hello,

you have just proved that this e-mail address is yours by signing in to {{site}} with it. Until then the address of your account was not confirmed, and somebody else could have created the account in your name. To be safe, its password was removed, and all other sessions have ended.

Choose a new password in your account, or go on signing in by e-mail.`,
  },
  emailChanged: {
    subject: 'Your e-mail address at {{site}} was changed',
    path: '/revert-email?token={{token}}',
    text: `Hello,

{{#pending}}somebody asked for another e-mail address in the profile of your account at {{site}}. It replaces this one as soon as it is confirmed:{{/pending}}{{^pending}}this is no longer the e-mail address of your account at {{site}}. It was changed {{#byAdmin}}by an administrator{{/byAdmin}}{{^byAdmin}}in your profile{{/byAdmin}}:{{/pending}}

{{time}}

{{#token}}If this was not you, undo the change within seven days. That ends all sessions and API tokens; then choose a new password. ${linkOrCode('Undo it here:', 'This code undoes it:', '/email/revert')}{{/token}}{{^token}}If you did not expect this, contact the people who run {{site}} at once: the owner of the new address can ask for a new password there.{{/token}}`,
  },
}

/** Returns the mail of a template. Values may come from anybody: they are escaped in HTML and encoded in URLs. */
export function renderMail(template: Template, values: Record<string, string>): Mail {
  const link = template.link ? fillTemplate(template.link, values, encodeURIComponent) : ''
  const allValues = { ...values, link }
  const text = fillTemplate(template.text, allValues)
  const html = template.html ? fillTemplate(template.html, allValues, escapeHtml) : toHtmlParagraphs(text, link)
  return { subject: toHeaderLine(fillTemplate(template.subject, allValues)), text, html }
}

/** Returns a header value that can neither start another header nor reverse the direction of the text. */
const toHeaderLine = (text: string) =>
  text
    .replace(/[\p{Cc}\u2028\u2029\p{Bidi_Control}]+/gu, ' ')
    .trim()
    .slice(0, 300)

/**
 * Fills a template: `{{name}}` is replaced by a value; names may contain dots. The text between `{{#name}}` and
 * `{{/name}}` is kept where there is such a value, the text between `{{^name}}` and `{{/name}}` where there is none.
 * Stops with the value that reaches `maxLength` characters, because a template may repeat a long value.
 */
export function fillTemplate(
  template: string,
  values: Record<string, string>,
  encode = (text: string) => text,
  maxLength = Number.POSITIVE_INFINITY,
): string {
  const sections: boolean[] = []
  let [output, hidden] = ['', 0]
  for (const piece of template.split(/(\{\{[#^/]?[\w.]{1,200}\}\})/)) {
    if (output.length >= maxLength) break
    const [, kind, name = ''] = /^\{\{([#^/]?)([\w.]{1,200})\}\}$/.exec(piece) ?? []
    const value = Object.hasOwn(values, name) ? values[name]! : ''
    if (kind === '#' || kind === '^') {
      sections.push((kind === '#') === !!value)
      if (!sections.at(-1)) hidden++
    } else if (kind === '/') {
      if (sections.pop() === false) hidden--
    } else if (!hidden) output += kind === undefined ? piece : encode(value)
  }
  return output
}

const escapeHtml = (text: string) => Bun.escapeHTML(text)

function toHtmlParagraphs(text: string, link: string): string {
  const anchor = `<a href="${escapeHtml(link)}">${escapeHtml(link)}</a>`
  const lines = (paragraph: string) =>
    paragraph.split('\n').map((line) => (link && line === link ? anchor : escapeHtml(line)))
  return text
    .split(/\n{2,}/)
    .map((paragraph) => `<p>${lines(paragraph).join('<br>\n')}</p>`)
    .join('\n')
}

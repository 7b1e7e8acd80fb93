import type { Static } from '@sinclair/typebox'
import type { templateSettings } from './template-settings'

export type TemplateName = keyof Static<typeof templateSettings.shape>
/** The texts of a mail, with placeholders that `fillTemplate` replaces. */
export type Template = {
  subject: string
  text: string
  /** Default: generated from the text. */
  html?: string
  link?: string
}
/** A standard template, with the pages that handle its link: one of the tenant's website, and the server's own. */
type StandardTemplate = Template & { page?: { ofWebsite: string; own: string } }

/** The content of a mail. */
export type Mail = { subject: string; text: string; html: string }

/** Returns the part of a text that has a link, if the mail has one. */
const withLink = (text: string) => `{{#link}}${text}

{{link}}

{{/link}}`

/** The default texts of mails. */
export const templates: Record<TemplateName, StandardTemplate> = {
  verification: {
    subject: 'Confirm your e-mail address for {{product}}',
    page: { ofWebsite: '/verify-email?token={{token}}', own: 'verify-email#{{token}}' },
    text: `Hello,

somebody entered this e-mail address at {{product}}. Enter this code there to confirm it, within ten minutes:

{{code}}

${withLink('Or open this link, within three days:')}If this was not you, ignore this mail.`,
  },
  passwordReset: {
    subject: 'Choose a new password for {{product}}',
    page: { ofWebsite: '/reset-password?token={{token}}', own: 'reset-password#{{token}}' },
    text: `Hello{{#name}} {{name}}{{/name}},

somebody asked for a new password for your account at {{product}}. Enter this code there to choose one, within ten minutes:

{{code}}

${withLink('Or open this link, within an hour:')}If this was not you, ignore this mail. Your password stays as it is.`,
  },
  emailSignIn: {
    subject: 'Sign in to {{product}}',
    page: { ofWebsite: '/sign-in?token={{token}}', own: 'email-link#{{token}}' },
    text: `Hello,

somebody asked to sign in at {{product}} with this e-mail address. Enter this code where you asked for it:

{{code}}

${withLink('Or open this link:')}This mail lets you sign in once, within the next 15 minutes. Do not pass it on to anybody.

If this was not you, ignore this mail.`,
  },
  invitation: {
    subject: 'An invitation to a workspace at {{product}}',
    page: { ofWebsite: '/invites', own: 'account' },
    text: `Hello,

you are invited to {{#workspace}}the workspace "{{workspace}}"{{/workspace}}{{^workspace}}a workspace{{/workspace}} at {{product}}. Sign in there with this e-mail address to accept or to decline{{#link}}:

{{link}}{{/link}}{{^link}}.{{/link}}

If you do not expect this, ignore this mail.`,
  },
  /** A mail of an integration. */
  message: { subject: '{{subject}}', text: '{{text}}' },
  newDevice: {
    subject: 'A new sign-in at {{product}}',
    text: `Hello{{#name}} {{name}}{{/name}},

somebody signed in to your account at {{product}} from a new device:

{{time}}
{{device}}
{{address}}

If this was not you, change your password. That ends all other sessions.`,
  },
  passwordRemoved: {
    subject: 'Your password at {{product}} was removed',
    text: `Hello,

you have just proved that this e-mail address is yours by signing in to {{product}} with it. Until then the address of your account was not confirmed, and somebody else could have created the account in your name. To be safe, its password was removed, and all other sessions have ended.

Choose a new password in your account, or go on signing in by e-mail.`,
  },
  emailChanged: {
    subject: 'Your e-mail address at {{product}} was changed',
    page: { ofWebsite: '/revert-email?token={{token}}', own: 'revert-email#{{token}}' },
    text: `Hello,

{{#pending}}somebody asked for another e-mail address in the profile of your account at {{product}}. It replaces this one as soon as it is confirmed:{{/pending}}{{^pending}}this is no longer the e-mail address of your account at {{product}}. It was changed {{#byAdmin}}by an administrator{{/byAdmin}}{{^byAdmin}}in your profile{{/byAdmin}}:{{/pending}}

{{time}}

{{#token}}If this was not you, undo the change within seven days. That signs out everybody who uses your account; then choose a new password. Undo it here:

{{link}}{{/token}}{{^token}}If you did not expect this, contact the people who run {{product}} at once: the owner of the new address can ask for a new password there.{{/token}}`,
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

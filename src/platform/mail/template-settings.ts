import { t } from 'elysia'
import { strictObject, webAddress } from '../../core/shapes'
import { defineSettings } from '../settings/tenant-settings'

/** Parts of a template that a tenant replaces. */
export const TemplateChange = strictObject({
  subject: t.Optional(t.String({ maxLength: 300 })),
  text: t.Optional(t.String({ maxLength: 10_000 })),
  html: t.Optional(t.String({ maxLength: 50_000, description: 'default: generated from the text' })),
  link: t.Optional(webAddress({ maxLength: 2_000, description: 'URL that contains {{token}}' })),
})

const template = t.Optional(TemplateChange)

/** A tenant's texts, which replace those of `templates.ts`. */
export const templateSettings = defineSettings(
  'mail-templates',
  t.Object({
    verification: template,
    passwordReset: template,
    emailSignIn: template,
    invitation: template,
    message: template,
    newDevice: template,
    passwordRemoved: template,
    emailChanged: template,
  }),
)

import { t } from 'elysia'
import type { Ctx } from '../../accounts/context'
import * as configurations from '../../content/configurations'
import { mergeMetadata } from '../../content/metadata'
import type { HttpContext } from '../../core/etag'
import { notFound, Problem } from '../../core/problem'
import { TemplateChange, templateSettings } from '../../platform/mail/template-settings'
import { defineKind } from './definition-kind'

type Template = (typeof TemplateChange)['static']

/** The texts of a mail that replace the standard ones. They are entries of the configuration `mail-templates`. */
export const mail = defineKind({
  folder: 'mail',
  nameKey: 'name',
  shape: t.Object({ name: t.String(), ...TemplateChange.properties }),
  defaults: {},
  list: (ctx, _query, answer) => readTemplates(ctx, answer),
  get: async (ctx, name, answer) =>
    (await readTemplates(ctx, answer)).find((template) => template.name === name) ?? notFound('template'),
  toStored: ({ name, template }) => ({ id: name, name, definition: template }),
  validate(_ctx, { name, ...template }, { before, planned }) {
    const others = planned.filter((other) => other.kind === 'mail' && other.name !== name)
    const stored = Object.fromEntries([
      ...others.map((other) => [other.name, other.definition]),
      ...(before ? [[name, before.stored]] : []),
    ])
    mergeMetadata(templateSettings.key, stored, { [name]: template }, '/metadata')
  },
  create: (ctx, { name, ...template }, answer) => writeTemplate(ctx, name, template, answer),
  change: (ctx, id, { name: _, ...template }, { answer }) => writeTemplate(ctx, id, template, answer),
  remove: (ctx, id, { answer }) => writeTemplate(ctx, id, null, answer),
})

async function readTemplates(ctx: Ctx, answer: HttpContext): Promise<{ name: string; template: Template }[]> {
  const found = await configurations.get(ctx, templateSettings.key, answer).catch((error) => {
    if (error instanceof Problem && error.status === 404) return
    throw error
  })
  const templates = Object.entries((found?.metadata ?? {}) as Record<string, Template>)
  return templates.map(([name, template]) => ({ name, template })).sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function writeTemplate(ctx: Ctx, name: string, template: Template | null, answer: HttpContext) {
  await configurations.update(ctx, templateSettings.key, { metadata: { [name]: template } }, answer)
  return { name, template: template ?? {} }
}

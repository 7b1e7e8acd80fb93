import { t } from 'elysia'
import type { Ctx } from '../../accounts/context'
import * as configurations from '../../content/configurations'
import { mergeMetadata } from '../../content/metadata'
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
  list: (ctx) => readTemplates(ctx),
  async get(ctx, name) {
    const { items, version } = await readTemplates(ctx)
    return { value: items.find((template) => template.name === name) ?? notFound('template'), version }
  },
  toStored: ({ name, template }) => ({ id: name, name, definition: template }),
  validate(_ctx, { name, ...template }, { before, planned }) {
    const others = planned.filter((other) => other.kind === 'mail' && other.name !== name)
    const stored = Object.fromEntries([
      ...others.map((other) => [other.name, other.definition]),
      ...(before ? [[name, before.stored]] : []),
    ])
    mergeMetadata(templateSettings.key, stored, { [name]: template }, '/metadata')
  },
  create: (ctx, { name, ...template }) => writeTemplate(ctx, name, template),
  change: (ctx, id, { name: _, ...template }, { ifMatch }) => writeTemplate(ctx, id, template, ifMatch),
  remove: (ctx, id, { ifMatch }) => writeTemplate(ctx, id, null, ifMatch),
})

type StoredTemplate = { name: string; template: Template }

async function readTemplates(ctx: Ctx): Promise<{ items: StoredTemplate[]; version?: string }> {
  const found = await configurations.get(ctx, templateSettings.key).catch((error) => {
    if (error instanceof Problem && error.status === 404) return
    throw error
  })
  const templates = Object.entries((found?.value.metadata ?? {}) as Record<string, Template>)
  const items = templates.map(([name, template]) => ({ name, template })).sort((a, b) => (a.name < b.name ? -1 : 1))
  return { items, version: found?.version }
}

async function writeTemplate(ctx: Ctx, name: string, template: Template | null, ifMatch?: string | null) {
  await configurations.update(ctx, templateSettings.key, { metadata: { [name]: template } }, { ifMatch })
  return { value: { name, template: template ?? {} } }
}

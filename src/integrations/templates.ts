import { fillTemplate } from '../platform/mail/templates'
import { type Invocation, toPayload } from './invocation'

/**
 * A text in which `{{…}}` stands for what came in: `{{eventName}}`, `{{metadata.total}}`, `{{body.name}}`, `{{query.page}}`, of
 * lists `{{metadata.items.0.name}}`. What is no text is written as JSON; what there is not stands for nothing.
 */
export function renderTemplate(template: string, invocation: Invocation): string {
  const names = new Set([...template.matchAll(/\{\{[#^/]?([\w.]{1,200})\}\}/g)].map(([, name = '']) => name))
  const values = [...names].map((name) => [name, toText(readPath(toPayload(invocation), name))] as const)
  return fillTemplate(template, Object.fromEntries(values))
}

/** The part at a dotted path. */
function readPath(value: unknown, path: string): unknown {
  let part = value
  for (const key of path.split('.')) {
    if (part === null || typeof part !== 'object' || !Object.hasOwn(part, key)) return
    part = (part as Record<string, unknown>)[key]
  }
  return part
}

function toText(value: unknown): string {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // No engine keeps these, and no mail may hold them.
  return text.replaceAll('\0', '').toWellFormed()
}

import { fill } from '../../accounts/mail/templates'
import { type Occasion, told } from './occasion'

/**
 * A text in which `{{…}}` stands for what came in: `{{eventName}}`, `{{metadata.total}}`, `{{body.name}}`, `{{query.page}}`, of
 * lists `{{metadata.items.0.name}}`. What is no text is written as JSON; what there is not stands for nothing.
 */
export function worded(template: string, occasion: Occasion): string {
  const names = new Set([...template.matchAll(/\{\{[#^/]?([\w.]{1,200})\}\}/g)].map(([, name = '']) => name))
  const values = [...names].map((name) => [name, plain(at(told(occasion), name))] as const)
  return fill(template, Object.fromEntries(values))
}

/** The part at a dotted path. */
function at(what: unknown, path: string): unknown {
  let part = what
  for (const key of path.split('.')) {
    if (part === null || typeof part !== 'object' || !Object.hasOwn(part, key)) return
    part = (part as Record<string, unknown>)[key]
  }
  return part
}

function plain(value: unknown): string {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // No engine keeps these, and no mail may hold them.
  return text.replaceAll('\0', '').toWellFormed()
}

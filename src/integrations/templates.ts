import { readPath } from '../core/json'
import { fillTemplate } from '../platform/mail/templates'
import { type Invocation, toPayload } from './invocation'

/**
 * Replaces `{{…}}` in a text by values of the payload: `{{eventName}}`, `{{metadata.total}}`, `{{body.name}}`,
 * `{{query.page}}`, in lists `{{metadata.items.0.name}}`. A value that is not a string becomes JSON, a missing one ''.
 * Returns at most `maxLength` characters.
 */
export function renderTemplate(template: string, invocation: Invocation, maxLength: number): string {
  const names = new Set([...template.matchAll(/\{\{[#^/]?([\w.]{1,200})\}\}/g)].map(([, name = '']) => name))
  const values = [...names].map((name) => [name, toText(readPath(toPayload(invocation), name))] as const)
  return fillTemplate(template, Object.fromEntries(values), undefined, maxLength).slice(0, maxLength)
}

function toText(value: unknown): string {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // Neither a database nor a mail can contain NUL and lone surrogates.
  return text.replaceAll('\0', '').toWellFormed()
}

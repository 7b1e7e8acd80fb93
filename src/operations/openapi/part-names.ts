import type { Schema } from './schema'

/** Returns a key, a path or an operation's id as the name of a type: `web-site.urls` → `WebSiteUrls`. */
export const toTypeName = (text: string) =>
  text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')

/** Returns the name of one of the things in a list of this name. */
export function toItemName(list: string) {
  if (/(series|data|list)$/i.test(list)) return `${list}Item`
  if (/ies$/.test(list)) return list.replace(/ies$/, 'y')
  return /[^s]s$/.test(list) ? list.slice(0, -1) : `${list}Item`
}

/**
 * Returns the name of an alternative of a union: its `x-name`, or the value of the property that tells it from the
 * others.
 */
export function toAlternativeName(union: string, alternatives: Schema[], index: number) {
  const [own = {}, ...others] = [alternatives[index], ...alternatives.filter((_, other) => other !== index)]
  if (typeof own['x-name'] === 'string') return `${union}${toTypeName(own['x-name'])}`
  const mark = Object.entries(constantsOf(own)).find(([key, value]) =>
    others.every((other) => constantsOf(other ?? {})[key] !== value),
  )
  return mark ? `${union}${toTypeName(`${mark[1]}`)}` : `${union}${index + 1}`
}

const constantsOf = ({ properties = {} }: Schema) =>
  Object.fromEntries(
    Object.entries(properties as Record<string, Schema>).flatMap(([key, { const: value }]) =>
      typeof value === 'string' ? [[key, value]] : [],
    ),
  )

/** Returns what generators make of a key or a parameter: some know neither case nor signs. */
export const foldName = (name: string) => name.replace(/[^A-Za-z0-9]/g, '').toLowerCase()

/** Returns properties of which no two get the same name in Go. */
export function withDistinctGoNames(properties: Record<string, Schema>): Record<string, Schema> {
  const timesUsed = new Map<string, number>()
  const named = Object.entries(properties).map(([key, property]) => {
    const folded = foldName(key)
    const times = (timesUsed.get(folded) ?? 0) + 1
    timesUsed.set(folded, times)
    return [key, times > 1 ? { ...property, 'x-go-name': `${toTypeName(key)}${times}` } : property]
  })
  return Object.fromEntries(named)
}

import type { TSchema } from '@sinclair/typebox'
import { type AnyElysia, Elysia, t } from 'elysia'
import { readList } from './list-text'
import { badRequest } from './problem'
import { LIST_PARAMETER } from './schema-annotations'

/** What the descriptions of parameters say that take several values. */
export const LIST_FORMS = 'separated by commas, repeated, or as a JSON array'

/** Returns the shape of a query parameter that takes several values. */
export const listParameter = (description: string, schema?: object) =>
  t.Optional(
    t.String({
      description: `${description}; ${LIST_FORMS}`,
      [LIST_PARAMETER]: true,
      ...(schema && { 'x-schema': schema }),
    } as object),
  )

export const malformedListMessage = (name: string) =>
  `${name} begins like a JSON array, but is not an array of strings, numbers or booleans. Write ["one","two"].`

/** Returns the values of a parameter that takes several. @throws 400 INVALID_INPUT for a malformed array */
export const parseList = (text: string, path: string): string[] =>
  readList(text) ?? badRequest({ path, message: malformedListMessage(path) })

const BRACKETS = /\[\d*\]$/

/**
 * Returns the parameters of a query, of which those that take several values are there once: repeated ones (`a=1&a=2`)
 * and those with brackets (`a[]=1`) become a JSON array. A value that stands alone without brackets may be a list.
 */
export function mergeLists(search: Iterable<[string, string]>, isList: (name: string) => boolean): [string, string][] {
  const parameters: [string, string][] = []
  const lists = new Map<string, { value: string; isLiteral: boolean }[]>()
  for (const [written, value] of search) {
    const bare = written.replace(BRACKETS, '')
    const isLiteral = bare !== written && isList(bare)
    if (!isLiteral && !isList(written)) parameters.push([written, value])
    else if (value && value !== 'undefined') lists.set(bare, [...(lists.get(bare) ?? []), { value, isLiteral }])
  }
  return [...parameters, ...[...lists].map(([name, parts]): [string, string] => [name, joinParts(parts)])]
}

function joinParts(parts: { value: string; isLiteral: boolean }[]): string {
  const [first] = parts
  if (parts.length === 1 && !first!.isLiteral) return first!.value
  const values: string[] = []
  for (const { value, isLiteral } of parts) {
    const list = isLiteral || !value.startsWith('[') ? [value] : readList(value)
    if (!list) return value // whoever reads it refuses it
    values.push(...list)
  }
  return JSON.stringify(values)
}

/** Gives each handler the parameters of its query that take several values as one text, however they were sent. */
export function mergeListParameters(app: () => AnyElysia) {
  let listsByRoute: Map<string, Set<string>> | undefined
  return new Elysia({ name: 'query-lists' }).onTransform({ as: 'global' }, ({ query, request, route }) => {
    const start = request.url.indexOf('?')
    if (start < 0) return
    listsByRoute ??= collectListParameters(app())
    const names = listsByRoute.get(`${request.method} ${route}`)
    if (!names) return
    for (const [name, value] of mergeLists(new URLSearchParams(request.url.slice(start)), (one) => names.has(one)))
      if (names.has(name)) (query as Record<string, string>)[name] = value
  })
}

function collectListParameters({ routes }: AnyElysia): Map<string, Set<string>> {
  const lists = new Map<string, Set<string>>()
  for (const { method, path, hooks } of routes) {
    const properties = Object.entries<TSchema>((hooks.query as TSchema | undefined)?.properties ?? {})
    const names = properties.filter(([, shape]) => LIST_PARAMETER in shape).map(([name]) => name)
    if (names.length) lists.set(`${method} ${path}`, new Set(names))
  }
  return lists
}

import { Elysia } from 'elysia'
import { badRequest } from './problem'

const HIGH_BYTE = /%[89a-f]/i
const ENCODED_BYTES = /(?:%[\da-f]{2})+/gi

/** Returns the name of the first parameter that is not UTF-8 once its percent signs are decoded, or undefined. */
export function findParameterNotUtf8(query: string): string | undefined {
  if (!HIGH_BYTE.test(query)) return
  const parameter = query.split('&').find((one) => (one.match(ENCODED_BYTES) ?? []).some(isNotUtf8))
  return parameter && new URLSearchParams(parameter).keys().next().value
}

function isNotUtf8(bytes: string): boolean {
  try {
    decodeURIComponent(bytes)
    return false
  } catch {
    return true
  }
}

/** @throws 400 INVALID_INPUT for a query that is not UTF-8 */
export function assertUtf8Query({ url }: Request) {
  const start = url.indexOf('?')
  const path = start < 0 ? undefined : findParameterNotUtf8(url.slice(start + 1))
  if (path === undefined) return
  badRequest({ path, message: 'The value is not UTF-8. Write a percent sign as %25, and "é" as %C3%A9.' })
}

/**
 * Refuses queries of the API that are not UTF-8: their bytes would be read as U+FFFD. Webhooks and plugins read their own.
 * @throws 400 INVALID_INPUT
 */
export const requireUtf8Queries = new Elysia({ name: 'utf8-queries' }).onTransform(
  { as: 'global' },
  ({ request, route }) => {
    if (!route.startsWith('/api/') || route.startsWith('/api/webhooks/') || route.endsWith('*')) return
    assertUtf8Query(request)
  },
)

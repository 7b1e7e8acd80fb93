import { getNamedTenant } from '../api/session'
import type { ApiRequest } from './api-button'

/** What stands where a token belongs until one is made. */
export const TOKEN_PLACEHOLDER = 'your-api-token'

/** Returns a text as one word of a shell. */
export const quoteForShell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** Returns the whole address of a request, with the query as people write it. */
export function toUrl({ path, query }: ApiRequest): string {
  const parameters = new URLSearchParams(query).toString().replace(/%(24|5B|5D|2C|3A)/g, decodeURIComponent)
  return `${location.origin}${path}${parameters && `?${parameters}`}`
}

/** The headers of a program; without a token, those of a guest. */
const toHeaders = (token: string | undefined) => {
  const tenant = getNamedTenant()
  return { ...(token && { 'X-Api-Key': token }), ...(tenant && { tenant }) }
}

/** Returns a request as a command of curl. `options` are further ones, such as `-N`. */
export function writeCurl(request: ApiRequest, token: string | undefined, options: string[] = []): string {
  const { method, body } = request
  const url = toUrl(request)
  return [
    ['curl', ...(method === 'GET' ? [] : ['-X', method]), ...(/[[{]/.test(url) ? ['-g'] : []), ...options].join(' '),
    ...Object.entries(toHeaders(token)).map(([name, value]) => `  -H ${quoteForShell(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`  --json ${quoteForShell(JSON.stringify(body))}`]),
    `  ${quoteForShell(url)}`,
  ].join(' \\\n')
}

/** Returns a request as a call of fetch. */
export function writeFetch(request: ApiRequest, token: string | undefined): string {
  const { method, body } = request
  const headers = { ...toHeaders(token), ...(body !== undefined && { 'Content-Type': 'application/json' }) }
  const options = { ...(method !== 'GET' && { method }), ...(Object.keys(headers).length && { headers }) }
  const written = [
    ...Object.entries(options).map(([name, value]) => `  ${name}: ${indent(JSON.stringify(value, null, 2))},`),
    ...(body === undefined ? [] : [`  body: JSON.stringify(${indent(JSON.stringify(body, null, 2))}),`]),
  ]
  const url = JSON.stringify(toUrl(request))
  const call = written.length ? `fetch(${url}, {\n${written.join('\n')}\n})` : `fetch(${url})`
  return `const response = await ${call}\nconst result = await response.json()`
}

const indent = (text: string) => text.replaceAll('\n', '\n  ')

import { type ApiClient, callApi, type TestResponse } from '../../test-tenant'
import { createThingsFixture } from '../fixtures'

/** A field of every type. */
export const allTypeFields = [
  { key: 'title', type: 'string', indexed: true },
  { key: 'notes', type: 'text' },
  { key: 'price', type: 'number' },
  { key: 'stock', type: 'integer' },
  { key: 'cost', type: 'decimal' },
  { key: 'active', type: 'boolean' },
  { key: 'day', type: 'date' },
  { key: 'moment', type: 'datetime' },
  { key: 'clock', type: 'time' },
  { key: 'data', type: 'object' },
  { key: 'picture', type: 'file' },
  { key: 'mail', type: 'email' },
  { key: 'link', type: 'url' },
  { key: 'parent', type: 'relation', target: 'things' },
  { key: 'tags', type: 'string', multi: true },
  { key: 'scores', type: 'integer', multi: true },
  { key: 'code', type: 'string', unique: true },
]

export const oddTexts = [
  ...['=1+1', '+49', '-5', '@SUM(A1)', "'", "'=x", "''-", '\t=x', '\r\n', '\n', '"', '""', '","', ',', ' ', ' x ', ';'],
  ...[
    '＝x',
    '\ufeff',
    '\u2028',
    '\u0001',
    '😀',
    '\uffff',
    'e\u0301',
    'null',
    'true',
    '5',
    '[]',
    '{}',
    'a\r\nb\rc\n',
    '\\',
  ],
]

export const createImportFixture = (more: object[] = [], ...rest: [] | [object[]]) =>
  createThingsFixture([...allTypeFields, ...more], ...rest)

type ImportFixture = Pick<Awaited<ReturnType<typeof createThingsFixture>>, 'origin' | 'path' | 'tokens'>

/** Returns a function that imports a file as a user. */
export const importBody =
  ({ origin, path, tokens }: ImportFixture, name: 'user' | 'admin' | 'other' = 'user') =>
  (raw: string | Uint8Array | ReadableStream, query = 'format=ndjson', headers: Record<string, string> = {}) =>
    callApi('POST', `${origin}/api${path}/import?${query}`, { raw, headers: { 'x-api-key': tokens[name], ...headers } })

export const toNdjson = (list: unknown[]) => list.map((one) => `${JSON.stringify(one)}\n`).join('')

/** Returns the text of an export in the wrapped shape; throws when it is rejected. */
export const exportText = async (client: ApiClient, path: string, query = '') => {
  const { status, body } = await client.get(`${path}/export?$flat=false&${query}`)
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body === undefined ? '' : typeof body === 'string' ? body : `${JSON.stringify(body)}\n`
}

/** Returns the properties of all entities by identifier. */
export const exportByIdentifier = async (client: ApiClient, path: string) =>
  Object.fromEntries(
    (await exportText(client, path))
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
      .map(({ identifier, metadata }) => [identifier, metadata]),
  )

/** Returns the index of the operation for which a batch was rejected. */
export const refusedOperation = ({ body: { details } }: TestResponse) =>
  details.index ?? Number(details[0].path.split('/')[2])

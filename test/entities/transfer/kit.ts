import { type Answer, ask, type Client } from '../../house'
import { shelf } from '../kit'

/** A field of every type, and values that are hard to carry. */
export const fields = [
  { key: 'title', type: 'string' },
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

export const odd = [
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

export const shop = (more: object[] = [], ...rest: [] | [object[]]) => shelf([...fields, ...more], ...rest)

type Own = Pick<Awaited<ReturnType<typeof shelf>>, 'origin' | 'path' | 'tokens'>

/** Sends a file to be imported. */
export const send =
  ({ origin, path, tokens }: Own, who: 'user' | 'admin' | 'other' = 'user') =>
  (raw: string | Uint8Array | ReadableStream, query = 'format=ndjson', headers: Record<string, string> = {}) =>
    ask('POST', `${origin}/api${path}/import?${query}`, { raw, headers: { 'x-api-key': tokens[who], ...headers } })

export const ndjson = (list: unknown[]) => list.map((one) => `${JSON.stringify(one)}\n`).join('')

/** What is exported, as it was sent. */
export const exported = async (client: Client, path: string, query = '') => {
  const { status, body } = await client.get(`${path}/export?$flat=false&${query}`)
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body === undefined ? '' : typeof body === 'string' ? body : `${JSON.stringify(body)}\n`
}

/** The entities' properties by identifier. */
export const all = async (client: Client, path: string) =>
  Object.fromEntries(
    (await exported(client, path))
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
      .map(({ identifier, metadata }) => [identifier, metadata]),
  )

/** The number of the operation that a batch was refused for. */
export const operationOf = ({ body: { details } }: Answer) => details.index ?? Number(details[0].path.split('/')[2])

import { category } from './sample-data'

/** One caller who asks one thing after the other: ms that half of the answers took at most, 99 of 100, and all. */
export type Latency = { p50: number; p99: number; most: number; slowest: string }

const MIN_REQUESTS = 150

export async function latency(url: string, headers: Record<string, string>, paths: string[]): Promise<Latency> {
  const times: { ms: number; path: string }[] = []
  for (let n = 0; n < Math.max(MIN_REQUESTS, paths.length); n++) {
    const path = paths[n % paths.length]!
    const began = performance.now()
    const response = await fetch(url + path, { headers })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${text}`)
    times.push({ ms: performance.now() - began, path })
  }
  times.sort((one, other) => one.ms - other.ms)
  const at = (part: number) => times[Math.floor((times.length - 1) * part)]!.ms
  return { p50: at(0.5), p99: at(0.99), most: at(1), slowest: times.at(-1)!.path }
}

const SORTED_FIELDS = ['title', 'category', 'price', 'stock', 'active', 'released', 'contact', 'notes']
const listPath = (query: string) => `/api/blueprints/products/entities?${query}&$limit=20`
const repeat = (count: number, path: (n: number) => string) => Array.from({ length: count }, (_, n) => path(n))

/** Always the same random numbers, from 0 to below `end`. */
function createRandom(state = { seed: 1 }) {
  return (end: number) => {
    state.seed = (state.seed * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((state.seed / 2 ** 31) * end)
  }
}

/** Queries of one to three filters by any field and operator, in any order. */
function anyQueries(count: number): string[] {
  const any = createRandom()
  const pick = <T>(values: readonly T[]) => values[any(values.length)]!
  const values: Record<string, () => string> = {
    title: () => `Product number ${any(100_000)}`,
    category: () => category(any(500)),
    price: () => `${any(100_000) / 100}`,
    stock: () => `${any(500)}`,
    active: () => pick(['true', 'false']),
    released: () => `20${10 + any(15)}-0${1 + any(9)}-1${any(10)}`,
    contact: () => `maker${any(5_000)}@example.com`,
    notes: () => `Notes on product ${any(100_000)}`,
    identifier: () => crypto.randomUUID(),
    created: () => new Date(Date.now() - any(86_400_000)).toISOString(),
    updated: () => new Date(Date.now() - any(86_400_000)).toISOString(),
  }
  const names = Object.keys(values)
  const filter = () => {
    const [name, operator] = [pick(names), pick(['', '[$lt]', '[$gte]', '[$gt]', '[$lte]', '[$ne]', '[$in]', '[$nin]'])]
    const value = /in\]$/.test(operator) ? repeat(1 + any(4), values[name]!).join(',') : values[name]!()
    return `${name}${operator}=${encodeURIComponent(value)}`
  }
  const sort = () => `${pick(['', '-'])}${pick(names)}`
  // A parameter that is sent twice is one list.
  const distinct = (filters: string[]) => [...new Map(filters.map((one) => [one.split('=')[0], one])).values()]
  return repeat(count, () =>
    listPath([...distinct(repeat(1 + any(3), filter)), `$sort=${repeat(1 + any(2), sort).join(',')}`].join('&')),
  )
}

/** What a list may be asked, as many ways as there are, beside what it may take at most (ms for the half). */
export const queryBenchmarks: Record<string, { paths: string[]; most?: number }> = {
  '$q of two words, few have them': { paths: repeat(50, (n) => listPath(`$q=number+${n * 97 + 1_000}`)), most: 5 },
  '$q of two words, a thousand have them': { paths: repeat(50, (n) => listPath(`$q=product+${10 + n}`)), most: 5 },
  '$q of two words, all have them': { paths: [listPath('$q=always+something')], most: 5 },
  ...Object.fromEntries(
    [...SORTED_FIELDS, 'identifier', 'created', 'updated'].map((key) => [
      `sort by ${key}`,
      { paths: [listPath(`$sort=${key}`), listPath(`$sort=-${key}`)], most: 3 },
    ]),
  ),
  'count by category': { paths: repeat(50, (n) => listPath(`category=${category(n)}&$count=true`)), most: 3 },
  'count by stock and active': { paths: repeat(50, (n) => listPath(`stock=${n}&active=true&$count=true`)), most: 3 },
  'count by a range of prices': {
    paths: repeat(50, (n) => listPath(`price[$gte]=${n * 10}&price[$lt]=${n * 10 + 100}&$count=true`)),
    most: 3,
  },
  'count by active, two thirds': { paths: [listPath('active=true&$count=true')], most: 3 },
  'like, a beginning': { paths: repeat(50, (n) => listPath(`title[$like]=product number ${n + 10}%25`)) },
  'like, in the middle': { paths: repeat(10, (n) => listPath(`title[$like]=%25number ${n + 10}7%25`)) },
  'a random query': { paths: anyQueries(300) },
}

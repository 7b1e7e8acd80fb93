import { expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import {
  apiCaller,
  createTempFolder,
  createTenantByCli,
  type RunOptions,
  runAtoll,
  signIn,
  startAtoll,
} from '../fakes/cli'
import { databaseUrl } from '../storage/engines'

setDefaultTimeout(240_000)

const PATH = '/api/blueprints/things/entities'
const THINGS = 5_000
const SCRIPT = [process.execPath, join(import.meta.dir, 'earlier-entities.ts')]
const QUERIES = ['n=7', 'title[$like]=%25 77%25', '$sort=-title', '$sort=_id', 'tags=odd&$sort=identifier', '$q=title']

const toLine = (n: number) => {
  const own = n % 3 ? {} : { identifier: `t${n}` }
  return JSON.stringify({ ...own, title: `Title ${n}`, n: n % 100, tags: n % 2 ? ['odd', `tag${n}`] : [] })
}

test('the rewrite of earlier entities goes on after each SIGKILL, and no answer changes', async () => {
  const database = databaseUrl && { ATOLL_DATABASE_URL: databaseUrl }
  const at: RunOptions = { at: createTempFolder(), env: { ATOLL_RATE_LIMITS: 'off', ...database } }
  const id = `compaction-${crypto.randomUUID().slice(0, 8)}`
  await createTenantByCli(at, id)
  /** Runs the script on the data of the server, which is not running. */
  const runScript = async (task: 'store' | 'count') => {
    const { code, out, err } = await runAtoll([id, task], { ...at, program: SCRIPT })
    expect(code, err).toBe(0)
    return Number(out)
  }
  let headers: Record<string, string>
  const answers = async (url: string) => {
    const call = apiCaller(url, headers)
    const pages = QUERIES.map(async (query) => (await call('GET', `${PATH}?${query}&$limit=50&$count=true`)).body)
    return [
      ...(await Promise.all(pages)),
      await (await fetch(`${url}${PATH}/export?format=ndjson`, { headers })).text(),
    ]
  }
  let before: unknown[]
  {
    await using server = await startAtoll(at)
    headers = await signIn(server.url, id)
    const call = apiCaller(server.url, headers)
    const fields = [
      { key: 'title', type: 'string' },
      { key: 'n', type: 'integer', indexed: true },
      { key: 'tags', type: 'string', multi: true },
    ]
    await call('POST', '/api/blueprints', { key: 'things', name: 'Things', fields })
    const body = Array.from({ length: THINGS }, (_, n) => toLine(n)).join('\n')
    const imported = await fetch(`${server.url}${PATH}/import?format=ndjson`, { method: 'POST', headers, body })
    expect(await imported.json()).toMatchObject({ imported: THINGS, failed: 0 })
    before = await answers(server.url)
    await server.end('SIGTERM')
  }
  const left = [await runScript('store')]
  expect(left).toEqual([THINGS])
  while (left.at(-1)) {
    await using server = await startAtoll({ ...at, env: { ...at.env, ATOLL_HOUSEKEEPING: '1' } })
    // Housekeeping is for tenants that are in use.
    expect((await apiCaller(server.url, headers)('GET', `${PATH}/t3`)).body.n).toBe(3)
    await Bun.sleep(300 * left.length)
    await server.end('SIGKILL')
    left.push(await runScript('count'))
    expect(left.at(-1)!).toBeLessThanOrEqual(left.at(-2)!)
    const isFirstOrLast = left.length === 2 || left.at(-1) === 0
    if (!isFirstOrLast) continue
    await using other = await startAtoll(at)
    expect(await answers(other.url)).toEqual(before)
  }
  expect(left.filter((count) => count > 0 && count < THINGS)).not.toEqual([])
})

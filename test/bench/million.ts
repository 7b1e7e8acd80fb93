import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { measureSequence } from './load'
import { category, product, productsBlueprint } from './sample-data'

const ROWS_BY_TENANT = { small: 10_000, large: 1_000_000 }

/**
 * Ten thousand rows beside a million: whether reads take as long, how fast an import of so many goes, and how much memory
 * the server has meanwhile.
 */
async function compareTableSizes(say: (text: string) => void) {
  const at = createTempFolder()
  const env = { ATOLL_IMPORT_LIMIT: '100000000000', ATOLL_RATE_LIMITS: 'off', ATOLL_DURABILITY: 'normal' }
  const surroundings = { at, env }
  for (const tenant of Object.keys(ROWS_BY_TENANT)) await createTenantByCli(surroundings, tenant)
  const report: Record<string, unknown> = {}
  {
    await using server = await startAtoll(surroundings)
    const memory = () =>
      Math.round(Number(readFileSync(`/proc/${server.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)![1]) / 1024)
    const path = '/api/blueprints/products/entities'
    const tenants: { headers: Record<string, string>; gets: string[]; pages: string[] }[] = []
    for (const [tenant, rows] of Object.entries(ROWS_BY_TENANT)) {
      const admin = { ...(await signIn(server.url, tenant)), 'content-type': 'application/json' }
      const send = async (path: string, body: object, headers: Record<string, string>) =>
        (await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) })).json()
      await send('/api/blueprints', productsBlueprint, admin)
      const person = { username: 'bench', password: 'correct-horse', authType: 'oauth' }
      const { payload } = (await send('/api/signup', person, { ...admin, authorization: '' })) as {
        payload: { token: string }
      }
      const signed = { tenant, authorization: `Bearer ${payload.token}`, 'content-type': 'application/json' }
      const { token } = (await send('/api/me/api-tokens', { nickname: 'bench' }, signed)) as { token: string }
      const headers = { tenant, 'x-api-key': token }
      const sizes: number[] = []
      const watch = setInterval(() => sizes.push(memory()), 250)
      const began = performance.now()
      let n = 0
      const body = new ReadableStream({
        pull(controller) {
          let some = ''
          for (const end = Math.min(rows, n + 500); n < end; n++)
            some += `${JSON.stringify({ identifier: `p${n}`, ...product(n) })}\n`
          if (some) controller.enqueue(Buffer.from(some))
          else controller.close()
        },
      })
      const answer = await fetch(`${server.url}${path}/import?format=ndjson`, { method: 'POST', headers, body })
      const { imported } = (await answer.json()) as { imported: number }
      clearInterval(watch)
      const perSecond = Math.round(imported / ((performance.now() - began) / 1000))
      const tenth = (part: number) => sizes[Math.floor((sizes.length - 1) * part)]
      report[tenant] = { imported, perSecond, memory: [0, 0.1, 0.5, 0.9, 1].map(tenth) }
      say(
        `${tenant}: ${imported} rows imported, ${perSecond}/s; memory at its beginning, 10 %, half, 90 %, end: ${[0, 0.1, 0.5, 0.9, 1].map(tenth).join(', ')} MB`,
      )
      tenants.push({
        headers,
        gets: Array.from({ length: 500 }, (_, n) => `${path}/p${(n * 7_919) % rows}`),
        pages: [
          `${path}?$limit=20`,
          ...Array.from({ length: 20 }, (_, n) => `${path}?category=${category(n)}&$limit=20`),
        ],
      })
    }
    for (const what of ['gets', 'pages'] as const) {
      const p50s: number[][] = [[], []]
      // In turn, so that a noisy neighbour disturbs both alike.
      for (let round = 0; round < 5; round++)
        for (const [at, tenant] of tenants.entries())
          p50s[at]!.push(
            (
              await measureSequence(
                server.url,
                tenant.headers,
                tenant[what].map((path) => ({ method: 'GET', path })),
              )
            ).p50,
          )
      const [small, large] = p50s.map((list) => list.toSorted((one, other) => one - other)[2]!) as [number, number]
      report[what] = { small, large, ratio: large / small }
      say(
        `${what}: p50 ${small.toFixed(2)} ms of 10,000 rows, ${large.toFixed(2)} ms of a million: ${(large / small).toFixed(2)} times`,
      )
    }
  }
  rmSync(at, { recursive: true })
  return report
}

const report = await compareTableSizes((text) => console.log(text))
mkdirSync('test/bench/results', { recursive: true })
writeFileSync('test/bench/results/million.json', `${JSON.stringify(report, null, 2)}\n`)
process.exit()
